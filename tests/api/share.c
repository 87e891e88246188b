/* SPDX-License-Identifier: BSD-3-Clause */
/* Blocks and shares in the host's memory: writes of random groups to each other's blocks arrive,
 * and other blocks are unchanged; a second attach returns the same share, in any thread; blocks and
 * shares are freed in any order, different on each PE, and shared memory stays valid until it is
 * released, also after shmem_finalize; an invalid argument gives the same error on all members; no
 * descriptor and no mapping is left over. PEs: 1 2 3 4 8 */
#include <shmemx.h>
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <weft.h>
#include "api/group.h"
#include "tap.h"

enum { ROUNDS = 60, PART = 5000, THREADS = 5, THREAD_ROUNDS = 20, LIVE = 6 };

static int me, npes;

/* --- One block, one group --------------------------------------------------------------------- */

static shmemx_block_t new_block(size_t bytes) {
    shmemx_block_t block = NULL;
    int rc = shmemx_block_alloc(SHMEMX_SPACE_HOST, bytes, &block);
    EXPECT(rc == 0, "rc is %d: %s", rc, weft_last_error());
    return block;
}

static shmemx_share_t attach(shmemx_block_t block, const struct group *group) {
    shmemx_share_t share = NULL;
    int rc = shmemx_share_attach(block, group->pes, group->count, group->tag, &share);
    EXPECT(rc == 0, "rc is %d: %s", rc, weft_last_error());
    return share;
}

/* Synchronises the group. */
static void meet(const struct group *group) {
    shmem_team_t team;
    EXPECT(shmemx_team_create(group->pes, group->count, group->tag, &team) == 0, "%s",
           weft_last_error());
    shmem_team_sync(team);
    shmem_team_destroy(team);
}

/* Communicates between all PEs, so that the engine has opened everything that it needs for that. */
static void meet_all(void) {
    static long word;
    struct group near = group_of_near();
    meet(&near);
    for (int pe = 0; pe < npes; pe++)
        shmem_long_p(&word, 1, pe);
    shmem_barrier_all();
}

static struct random content(uint64_t round, int from, int to) {
    return random_of(round * 1000 + (uint64_t)from, to);
}

/* Member i's block has a part for each member: member j writes to part j. */
static void write_to_all(shmemx_share_t share, const struct group *group, size_t part,
                         uint64_t round) {
    for (int i = 0; i < group->count; i++) {
        struct random random = content(round, me, group->pes[i]);
        char *to = shmemx_share_ptr(share, i);
        random_fill(&random, to + (size_t)group->member * part, part);
    }
}

static void check_parts(const char *block, const struct group *group, size_t part, uint64_t round) {
    char *expected = malloc(part);
    for (int j = 0; j < group->count; j++) {
        struct random random = content(round, group->pes[j], me);
        random_fill(&random, expected, part);
        EXPECT(memcmp(block + (size_t)j * part, expected, part) == 0, "from PE %d in round %d",
               group->pes[j], (int)round);
    }
    free(expected);
}

/* Every member writes to every member. */
static void use(shmemx_share_t share, const struct group *group, size_t part, uint64_t round) {
    meet(group);
    write_to_all(share, group, part, round);
    meet(group);
    check_parts(shmemx_share_ptr(share, group->member), group, part, round);
}

static bool is_zero(const char *p, size_t bytes) {
    return bytes == 0 || (p[0] == 0 && memcmp(p, p + 1, bytes - 1) == 0);
}

static void random_groups(void) {
    struct random random = random_of(11, 0);
    for (uint64_t round = 0; round < ROUNDS; round++) {
        struct group group = group_draw_near(&random);
        size_t part = 1 + random_below(&random, PART), bytes = part * (size_t)group.count;
        if (group.member < 0)
            continue;
        shmemx_block_t block = new_block(bytes);
        char *at = shmemx_block_ptr(block);
        EXPECT(shmemx_block_bytes(block) == bytes && is_zero(at, bytes), "%zu zeroes", bytes);
        EXPECT(shmemx_block_space(block) == SHMEMX_SPACE_HOST, "space %d",
               (int)shmemx_block_space(block));
        EXPECT(shmemx_block_gpu(block) == -1, "on GPU %d", shmemx_block_gpu(block));
        shmemx_share_t share = attach(block, &group);
        EXPECT(shmemx_share_ptr(share, group.member) == at, "the own one is in its place");
        EXPECT(!shmemx_share_ptr(share, -1) && !shmemx_share_ptr(share, group.count), "no member");
        use(share, &group, part, round);
        shmemx_share_release(share);
        check_parts(at, &group, part, round);
        shmemx_block_free(block);
    }
}

/* PE i makes i blocks more than the group attaches. */
static void find_blocks(void) {
    shmemx_block_t blocks[GROUP_MAX + 2];
    int count = me + 2, local;
    for (int i = 0; i < count; i++)
        blocks[i] = new_block((size_t)(i + 1) * 3000);
    for (int i = 0; i < count; i++) {
        char *at = shmemx_block_ptr(blocks[i]);
        size_t bytes = shmemx_block_bytes(blocks[i]);
        EXPECT(shmemx_block_find(at) == blocks[i], "its first byte");
        EXPECT(shmemx_block_find(at + bytes - 1) == blocks[i], "its last byte");
        EXPECT(shmemx_block_find(at - 1) != blocks[i], "before");
        EXPECT(shmemx_block_find(at + bytes) != blocks[i], "behind");
    }
    struct group all = group_of_near();
    shmemx_share_t share = attach(blocks[0], &all);
    for (int i = 0; i < all.count; i++)
        EXPECT(i == all.member || !shmemx_block_find(shmemx_share_ptr(share, i)), "a peer's");
    EXPECT(!shmemx_block_find(NULL) && !shmemx_block_find(&local), "none");
    for (int i = 0; i < count; i++) {
        void *at = shmemx_block_ptr(blocks[i]);
        shmemx_block_free(blocks[i]);
        EXPECT(!shmemx_block_find(at), "freed");
    }
    shmemx_share_release(share);
}

/* --- Several ---------------------------------------------------------------------------------- */

/* One block in groups that overlap, all of them attached before any is used, some twice. */
static void several_groups(void) {
    struct random random = random_of(12, 0);
    shmemx_block_t block = new_block((size_t)LIVE * 100 * (size_t)npes);
    struct group groups[LIVE];
    shmemx_share_t shares[LIVE] = {NULL};
    for (int i = 0; i < LIVE; i++) {
        groups[i] = group_draw_near(&random);
        groups[i].tag = (uint64_t)i % 3;
        if (groups[i].member >= 0)
            shares[i] = attach(block, &groups[i]);
    }
    for (uint64_t i = 0; i < LIVE; i++) {
        if (groups[i].member < 0)
            continue;
        shmemx_share_t again = attach(block, &groups[i]);
        EXPECT(again == shares[i], "the same share");
        use(shares[i], &groups[i], 100, 200 + i);
        shmemx_share_release(again);
        use(shares[i], &groups[i], 100, 300 + i);
    }
    for (int i = 0; i < LIVE; i++)
        shmemx_share_release(shares[i]);
    shmem_barrier_all();
    shmemx_block_free(block);
}

/* Blocks and shares are freed in an order that differs between PEs, and others are made meanwhile:
 * memory that is still shared does not change. */
static void any_order(void) {
    struct group all = group_of_near();
    struct random mine = random_of(13, me);
    shmemx_block_t blocks[LIVE];
    shmemx_share_t shares[LIVE];
    char *own[LIVE];
    for (uint64_t i = 0; i < LIVE; i++) {
        blocks[i] = new_block((size_t)PART * (size_t)npes);
        shares[i] = attach(blocks[i], &all);
        own[i] = shmemx_block_ptr(blocks[i]);
        use(shares[i], &all, PART, 400 + i);
    }
    for (int left = 2 * LIVE; left > 0;) {
        size_t i = random_below(&mine, LIVE), is_block = random_below(&mine, 2);
        if (is_block ? blocks[i] == NULL : shares[i] == NULL || blocks[i])
            continue; /* of each pair the block is freed first, as shares do when users hold them */
        if (is_block) {
            shmemx_block_free(blocks[i]);
            blocks[i] = NULL;
            memset(shmemx_block_ptr(blocks[i] = new_block((size_t)PART * (size_t)npes)), 77, PART);
            shmemx_block_free(blocks[i]);
            blocks[i] = NULL;
            EXPECT(shmemx_share_ptr(shares[i], all.member) == own[i], "in its place");
            check_parts(own[i], &all, PART, 400 + i);
        } else {
            shmemx_share_release(shares[i]);
            shares[i] = NULL;
        }
        left--;
    }
    shmem_barrier_all();
}

/* Memory that a peer has freed, and released for reuse, is unchanged here. */
static void outlives_its_block(void) {
    struct group all = group_of_near();
    shmemx_block_t block = new_block((size_t)PART * (size_t)npes), others[LIVE];
    shmemx_share_t share = attach(block, &all);
    use(share, &all, PART, 500);
    if (me % 2)
        shmemx_block_free(block);
    for (int i = 0; i < LIVE; i++)
        memset(shmemx_block_ptr(others[i] = new_block((size_t)PART * (size_t)npes)), 55, PART);
    meet(&all);
    use(share, &all, PART, 501);
    if (me % 2 == 0)
        shmemx_block_free(block);
    use(share, &all, PART, 502);
    shmemx_share_release(share);
    for (int i = 0; i < LIVE; i++)
        shmemx_block_free(others[i]);
}

/* --- Threads ---------------------------------------------------------------------------------- */

static shmemx_block_t common;
static shmemx_share_t common_share[THREADS];

static intptr_t count_wrong(int rc) {
    if (rc)
        fprintf(stderr, "# PE %d: %d: %s\n", me, rc, weft_last_error());
    return rc != 0;
}

/* Every member adds a number to each other's block. */
static intptr_t in_group(const struct group *group, bool block_first) {
    shmemx_block_t block;
    shmemx_share_t share, other;
    intptr_t wrong = count_wrong(shmemx_block_alloc(SHMEMX_SPACE_HOST, 5000, &block));
    const int *pes = group->pes;
    wrong += count_wrong(shmemx_share_attach(block, pes, group->count, group->tag, &share));
    wrong += count_wrong(shmemx_share_attach(common, pes, group->count, group->tag + 1000, &other));
    wrong += shmemx_block_find(shmemx_block_ptr(block)) != block;
    for (int i = 0; i < group->count && !wrong; i++)
        __atomic_fetch_add((int *)shmemx_share_ptr(share, i), pes[i] + 1, __ATOMIC_SEQ_CST);
    if (block_first)
        shmemx_block_free(block);
    shmemx_share_release(share);
    shmemx_share_release(other);
    if (!block_first)
        shmemx_block_free(block);
    return wrong;
}

static void *run_thread(void *number) {
    struct random random = random_of(600 + (uint64_t)(uintptr_t)number, 0);
    struct group all = group_of_near();
    intptr_t wrong = 0;
    for (int round = 0; round < THREAD_ROUNDS; round++) {
        struct group group = group_draw_near(&random);
        group.tag = (uint64_t)(uintptr_t)number;
        if (group.member >= 0)
            wrong += in_group(&group, round % 2);
    }
    wrong += count_wrong(
        shmemx_share_attach(common, all.pes, all.count, 5000, &common_share[(intptr_t)number]));
    return (void *)wrong;
}

/* Finally all threads of a PE attach the same block with the same list: that is one share. */
static void in_threads(void) {
    pthread_t threads[THREADS];
    common = new_block(1000);
    for (intptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, run_thread, (void *)i);
    for (int i = 0; i < THREADS; i++) {
        void *wrong = NULL;
        pthread_join(threads[i], &wrong);
        EXPECT(wrong == NULL, "%d wrong in thread %d", (int)(intptr_t)wrong, i);
        EXPECT(common_share[i] == common_share[0], "thread %d", i);
    }
    struct group all = group_of_near();
    use(common_share[0], &all, 1000 / GROUP_MAX, 700);
    for (int i = 0; i < THREADS; i++)
        shmemx_share_release(common_share[i]);
    shmemx_block_free(common);
}

/* --- Errors ----------------------------------------------------------------------------------- */

static void refuse_attach(shmemx_block_t block, const int *pes, int count, const char *text) {
    shmemx_share_t share = (shmemx_share_t)&me;
    int rc = shmemx_share_attach(block, pes, count, 0, &share);
    EXPECT(rc == -EINVAL && strstr(weft_last_error(), text), "%d: %s", rc, weft_last_error());
    EXPECT(share == NULL, "no share");
}

/* The last near PE's block is larger: all PEs get the same error text, except for the PE that it
 * names. */
static void sizes_that_differ(void) {
    struct group all = group_of_near();
    shmemx_block_t block = new_block(me == all.pes[0] ? 2000 : 1000);
    if (all.count > 1) {
        refuse_attach(block, all.pes, all.count, "1000 bytes of host memory");
        refuse_attach(block, all.pes, all.count, "2000 of host memory");
    }
    shmemx_block_free(block);
}

static void wrong_arguments(void) {
    shmemx_block_t block = new_block(100), none = (shmemx_block_t)&me;
    int twice[] = {me, me};
    refuse_attach(NULL, &me, 1, "block is NULL");
    refuse_attach(block, NULL, 1, "pes is NULL");
    refuse_attach(block, &me, 0, "npes is 0");
    refuse_attach(block, &npes, 1, "pes[0] is");
    if (npes > 1)
        refuse_attach(block, twice, 2, "pes[0] and pes[1]");
    EXPECT(shmemx_share_attach(block, &me, 1, 0, NULL) == -EINVAL, "nowhere to put it");
    EXPECT(shmemx_block_alloc(SHMEMX_SPACE_HOST, 100, NULL) == -EINVAL, "nowhere to put it");
    EXPECT(shmemx_block_alloc(SHMEMX_SPACE_HOST, 0, &none) == -EINVAL && !none, "no bytes");
    EXPECT(shmemx_block_alloc((shmemx_space_t)7, 1, &none) == -EINVAL, "no such space");
    EXPECT(strstr(weft_last_error(), "space is 7"), "%s", weft_last_error());
    shmemx_block_free(block);
    shmemx_block_free(NULL);
    shmemx_share_release(NULL);
    EXPECT(!shmemx_block_ptr(NULL) && !shmemx_share_ptr(NULL, 0), "nothing");
}

static void refuse_alloc(size_t bytes, int rc_expected, const char *text) {
    shmemx_block_t block = (shmemx_block_t)&me;
    int rc = shmemx_block_alloc(SHMEMX_SPACE_HOST, bytes, &block);
    EXPECT(rc == rc_expected && strstr(weft_last_error(), text), "%zu bytes: %d: %s", bytes, rc,
           weft_last_error());
    EXPECT(!block, "no block");
}

static void with_limit(int resource, rlim_t most, size_t bytes, int rc, const char *text) {
    struct rlimit before, limit;
    getrlimit(resource, &before);
    limit = (struct rlimit){most, before.rlim_max};
    setrlimit(resource, &limit);
    refuse_alloc(bytes, rc, text);
    setrlimit(resource, &before);
}

static void more_than_there_is(void) {
    refuse_alloc(SIZE_MAX, -ENOMEM, "no machine");
    refuse_alloc((size_t)1 << 46, -ENOMEM, "the machine has");
    with_limit(RLIMIT_FSIZE, 1 << 20, 2 << 20, -EFBIG, "ulimit -f");
    struct group all = group_of_near();
    shmemx_block_t block = new_block(1000);
    shmemx_share_t share = attach(block, &all);
    shmemx_share_release(share);
    shmemx_block_free(block);
}

/* --- Nothing is left over --------------------------------------------------------------------- */

static int count_descriptors(void) {
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

static int count_mappings(void) {
    char line[4096];
    int count = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, maps))
        count += strstr(line, "weft-block") != NULL;
    fclose(maps);
    return count;
}

/* A forked child does not affect the parent's blocks. */
static void in_a_child(void) {
    shmemx_block_t block = new_block(1000);
    shmemx_share_t share = attach(block, &(struct group){.pes = {me}, .count = 1});
    memset(shmemx_block_ptr(block), 9, 1000);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        shmemx_block_t other;
        bool found = shmemx_block_find(shmemx_block_ptr(block)) != NULL;
        shmemx_share_release(share);
        shmemx_block_free(block);
        _exit(found || shmemx_block_alloc(SHMEMX_SPACE_HOST, 10, &other) != -EPERM);
    }
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT(status == 0, "status %d", status);
    EXPECT(((char *)shmemx_block_ptr(block))[999] == 9, "still there");
    shmemx_share_release(share);
    shmemx_block_free(block);
}

/* Blocks and shares that exist when the job ends stay valid, and are freed afterwards. */
static void behind_the_end(void) {
    struct group all = group_of_near();
    shmemx_block_t block = new_block((size_t)PART * (size_t)npes);
    shmemx_share_t share = attach(block, &all), none;
    use(share, &all, PART, 800);
    shmem_finalize();
    check_parts(shmemx_block_ptr(block), &all, PART, 800);
    EXPECT(shmemx_block_find(shmemx_block_ptr(block)) == block, "still found");
    EXPECT(((char *)shmemx_share_ptr(share, 0))[0] || 1, "it can be read");
    refuse_alloc(10, -EPERM, "shmem_finalize");
    EXPECT(shmemx_share_attach(block, all.pes, all.count, 0, &none) == -EPERM && !none, "attach");
    shmemx_block_free(block);
    shmemx_share_release(share);
}

int main(void) {
    tap_start(0);
    int provided;
    shmemx_block_t block;
    bool early = shmemx_block_alloc(SHMEMX_SPACE_HOST, 10, &block) == -EPERM && !block &&
                 !shmemx_block_find(&early);
    shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided);
    tap_start(me = shmem_my_pe());
    npes = shmem_n_pes();
    meet_all();
    int descriptors = count_descriptors();
    tap_case("writes of random groups to each other arrive");
    random_groups();
    tap_case("blocks are found by any of their addresses");
    find_blocks();
    tap_case("one block in several groups");
    several_groups();
    tap_case("blocks and shares go in any order");
    any_order();
    tap_case("a share outlives its block");
    outlives_its_block();
    tap_case("threads of a PE attach at once");
    in_threads();
    tap_case("sizes that differ are an error on all");
    sizes_that_differ();
    tap_case("arguments that are wrong");
    wrong_arguments();
    tap_case("more than there is");
    more_than_there_is();
    tap_case("in a forked child");
    in_a_child();
    tap_case("nothing is left");
    shmem_barrier_all();
    EXPECT(count_descriptors() == descriptors, "%d descriptors, not %d", count_descriptors(),
           descriptors);
    EXPECT(count_mappings() == 0, "%d mappings", count_mappings());
    tap_case("blocks and shares that are alive at the end");
    behind_the_end();
    tap_case("outside of a job");
    EXPECT(early, "before shmem_init");
    EXPECT(shmemx_block_alloc(SHMEMX_SPACE_HOST, 10, &block) == -EPERM, "behind shmem_finalize");
    return tap_finish();
}
