/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: GPU memory that each PE makes for itself and random groups of PEs attach: members'
 * writes to each other arrive, other memory is unchanged, a second attach returns the same share,
 * different sizes are an error on all members, and blocks and shares are freed in any order, with
 * all memory returned at the end. PEs: 1 2 3 4 */
#include <errno.h>
#include <pthread.h>
#include "base/log.h"
#include "core/share.h"
#include "gpu.h"

enum { PES_MAX = 8, ROUNDS = 12, THREADS = 3 };

static int npes, me;

struct group {
    int pes[PES_MAX], count, member; /* -1: this PE is no member */
    size_t offset;                   /* where its parts begin in the blocks */
    struct weft_boot_subset subset;
};

/* Equal on all PEs. */
static void draw_group(struct group *group, uint64_t key) {
    for (int pe = 0; pe < npes; pe++)
        group->pes[pe] = pe;
    for (int i = npes - 1; i > 0; i--) {
        int other = (int)gpu_draw(key * 100 + (uint64_t)i, (uint64_t)i + 1), pe = group->pes[i];
        group->pes[i] = group->pes[other];
        group->pes[other] = pe;
    }
    group->count = 1 + (int)gpu_draw(key * 100 + 99, (uint64_t)npes);
    group->member = -1;
    group->offset = 0;
    for (int i = 0; i < group->count; i++)
        if (group->pes[i] == me)
            group->member = i;
    group->subset = (struct weft_boot_subset){group->pes, group->count, key, NULL};
}

static struct weft_block *new_block(size_t bytes) {
    struct weft_block *block = NULL;
    int rc = weft_block_alloc(&block, SHMEMX_SPACE_DEVICE, -1, bytes);
    EXPECT(rc == 0, "rc is %d: %s", rc, weft_fail_text());
    if (rc)
        exit(1);
    return block;
}

static struct weft_share *attach(struct weft_block *block, const struct group *group) {
    struct weft_share *share = NULL;
    int rc = weft_share_attach(&share, block, &group->subset);
    EXPECT(rc == 0, "rc is %d: %s", rc, weft_fail_text());
    if (rc)
        exit(1);
    return share;
}

/* Member i's block has one part for each member: member j writes to part j. */
static uint64_t key_of(uint64_t round, int from, int to) {
    return round * 10000 + (uint64_t)from * 100 + (uint64_t)to;
}

static void write_to_all(struct weft_share *share, const struct group *group, size_t part,
                         uint64_t round) {
    for (int i = 0; i < group->count; i++) {
        char *to = (char *)weft_share_at(share, i) + group->offset;
        gpu_write(to + (size_t)group->member * part,
                  gpu_data(part, key_of(round, me, group->pes[i])), part);
    }
}

static void meet(const struct group *group) {
    char mine = 0, all[PES_MAX];
    struct weft_exchange exchange = {.mine = &mine, .bytes = 1, .all = all};
    int rc = weft_boot_exchange_among(&group->subset, &exchange);
    EXPECT(rc == 0, "rc is %d", rc);
}

static void check_parts(const char *block, const struct group *group, size_t part, uint64_t round) {
    for (int i = 0; i < group->count; i++)
        gpu_expect(block + group->offset + (size_t)i * part,
                   gpu_data(part, key_of(round, group->pes[i], me)), part, "round %d, from PE %d",
                   (int)round, group->pes[i]);
}

static void use(struct weft_share *share, const char *block, const struct group *group, size_t part,
                uint64_t round) {
    write_to_all(share, group, part, round);
    meet(group);
    check_parts(block, group, part, round);
    check_parts(weft_share_at(share, group->member), group, part, round);
    meet(group);
}

/* The address formula, from this PE's addresses, agrees. */
static void check_formula(struct weft_share *share, const char *block, const struct group *group,
                          size_t part, uint64_t round) {
    const struct weft_window *window = weft_share_window(share);
    EXPECT(weft_window_holds(window, block, part) && window->count == (uint32_t)group->count,
           "%zu bytes, %u slots", window->bytes, window->count);
    for (int i = 0; i < group->count; i++) {
        char *there = weft_window_at(window, block, (uint32_t)i);
        EXPECT(i == group->member || there == weft_share_at(share, i), "member %d", i);
        gpu_expect(there + (size_t)group->member * part,
                   gpu_data(part, key_of(round, me, group->pes[i])), part, "of member %d", i);
    }
}

static void random_groups(void) {
    for (uint64_t round = 0; round < ROUNDS; round++) {
        struct group group;
        draw_group(&group, round);
        size_t part = 1 + gpu_draw(round * 7, round % 4 == 0 ? 300000 : 5000);
        if (group.member < 0)
            continue;
        struct weft_block *block = new_block(part * (size_t)group.count);
        char *at = weft_block_at(block), zero[64] = {0};
        gpu_expect(at, zero, part < sizeof zero ? part : sizeof zero, "a new block is zero");
        struct weft_share *share = attach(block, &group);
        use(share, at, &group, part, round);
        check_formula(share, at, &group, part, round);
        meet(&group);
        weft_share_release(share);
        weft_block_free(block);
    }
}

/* A block in two groups at once; the second attach of each needs no communication. */
static void again(void) {
    enum { PART = 4096 };
    struct weft_block *block = new_block((size_t)2 * PART * (size_t)npes);
    char *at = weft_block_at(block);
    for (uint64_t round = 50; round < 56; round++) {
        struct group group;
        draw_group(&group, round % 2); /* three times each */
        group.offset = round % 2 * PART * (size_t)npes;
        if (group.member < 0)
            continue;
        struct weft_share *share = attach(block, &group);
        struct weft_share *same = attach(block, &group);
        EXPECT(share == same, "round %d", (int)round);
        weft_share_release(same);
        use(share, at, &group, PART, round);
        weft_share_release(share);
        EXPECT(weft_block_of(at + PART / 2) == block, "%p", (void *)at);
    }
    EXPECT(!weft_block_of(at - 1) && !weft_block_of(&npes), "not in a block");
    shmem_barrier_all();
    weft_block_free(block);
    EXPECT(!weft_block_of(at), "it is gone");
}

/* Odd PEs free their block first, and all members can still access the mapped share. */
static void free_first(void) {
    enum { PART = 70000 };
    struct group group = {.count = npes, .member = me};
    for (int pe = 0; pe < npes; pe++)
        group.pes[pe] = pe;
    group.subset = (struct weft_boot_subset){group.pes, npes, 77, NULL};
    struct weft_block *block = new_block((size_t)PART * (size_t)npes);
    struct weft_share *share = attach(block, &group);
    if (me % 2)
        weft_block_free(block);
    use(share, weft_share_at(share, me), &group, PART, 60);
    if (me % 2 == 0)
        weft_block_free(block);
    use(share, weft_share_at(share, me), &group, PART, 61);
    shmem_barrier_all();
    weft_share_release(share);
}

static void *in_thread(void *number) {
    struct group group;
    for (uint64_t round = 0; round < 4; round++) {
        draw_group(&group, 1000 + (uintptr_t)number * 10 + round);
        if (group.member < 0)
            continue;
        struct weft_block *block = new_block(10000);
        struct weft_share *share = attach(block, &group);
        meet(&group);
        weft_block_free(block);
        weft_share_release(share);
    }
    return NULL;
}

static void threads(void) {
    pthread_t thread[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        pthread_create(&thread[i], NULL, in_thread, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
}

static void misfits(void) {
    struct group group = {.count = npes, .member = me};
    for (int pe = 0; pe < npes; pe++)
        group.pes[pe] = pe;
    group.subset = (struct weft_boot_subset){group.pes, npes, 88, NULL};
    struct weft_block *block = new_block(me ? 1000 : 2000);
    struct weft_share *share = NULL;
    int rc = weft_share_attach(&share, block, &group.subset);
    EXPECT(npes == 1 ? rc == 0 : rc == -EINVAL && strstr(weft_fail_text(), "2000"), "rc is %d: %s",
           rc, weft_fail_text());
    if (share)
        weft_share_release(share);
    weft_block_free(block);
}

/* The driver abandons the capture; the first call after it unmaps the memory. */
static void freed_in_capture(void) {
    struct weft_block *block = new_block(5000);
    void *at = weft_block_at(block);
    weft_cu_graph graph = NULL;
    gpu_enter();
    GPU(cuStreamBeginCapture(gpu_stream, WEFT_CU_CAPTURE_GLOBAL));
    weft_block_free(block);
    if (gpu.cuStreamEndCapture(gpu_stream, &graph) == 0)
        GPU(cuGraphDestroy(graph));
    gpu_leave();
    EXPECT(!weft_block_of(at), "it is found no more");
    weft_block_free(new_block(5000));
    gpu_enter();
    EXPECT(!gpu_is_device(at), "%p is mapped still", at);
    gpu_leave();
}

int main(void) {
    shmem_init();
    gpu_start();
    npes = shmem_n_pes();
    me = shmem_my_pe();
    tap_case("writes of members of random groups to each other arrive");
    random_groups();
    size_t before = gpu_memory_left();
    tap_case("a block in two groups, attached again and again");
    again();
    tap_case("blocks that are freed before their shares");
    free_first();
    tap_case("in threads");
    threads();
    tap_case("sizes that differ are an error on all members");
    misfits();
    tap_case("a block that is freed during a capture");
    for (int times = 0; times < 8; times++)
        freed_in_capture();
    tap_case("the memory is back");
    size_t after = gpu_memory_left();
    EXPECT(after + (8 << 20) > before, "%zu bytes before, %zu after", before, after);
    return gpu_finish();
}
