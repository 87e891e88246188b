/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: weft_kv_shuffle on streams, byte for byte: problems as on the host (tests/kv.h), on
 * teams of all PEs, of every second and of a list; caches in the device heap, and in blocks that
 * the team shares; more caches than a kernel takes; blocks of several pieces; a graph that is
 * replayed with other pairs and tables. PEs: 1 2 3 4, also staged Far: cyclic:2 seed=7,reorder=16
 */
#include <errno.h>
#include "gpu/graph.h"
#include "gpu/on_stream.h"
#include "kv.h"

enum { CACHES_MAX = 130, ROOM = 6 << 20, NUMBERS = 1 << 14 };

static unsigned char *cache_room;
static int64_t *numbers_room; /* both tables, NUMBERS bytes apart, then the pair */

static int64_t *table(int which) {
    return numbers_room + which * NUMBERS / (int)sizeof(int64_t);
}

static void set_caches(const struct kv *kv, void **caches) {
    size_t step = (kv->blocks * kv->block_bytes + 15) / 16 * 16;
    if (step * kv->caches > ROOM)
        exit(1);
    for (size_t i = 0; i < kv->caches; i++)
        caches[i] = cache_room + i * step;
}

/* Copies the caches and the tables of member `me` to GPU memory. */
static void write_problem(const struct kv *kv, void *const *caches, int me) {
    struct kv_member m = kv_member_new(kv, me);
    unsigned char *bytes = malloc(kv->blocks * kv->block_bytes);
    gpu_write(table(0), m.from, kv->count * sizeof *m.from);
    gpu_write(table(1), m.to, kv->count * sizeof *m.to);
    gpu_write(table(2), m.pair, sizeof m.pair);
    for (size_t i = 0; i < kv->caches; i++) {
        kv_fill_cache(kv, bytes, me, i);
        gpu_write(caches[i], bytes, kv->blocks * kv->block_bytes);
    }
    free(bytes);
    kv_member_free(&m);
}

static void expect_solved(const struct kv *kv, void *const *caches, int me) {
    unsigned char *bytes = malloc(kv->blocks * kv->block_bytes);
    for (size_t i = 0; i < kv->caches; i++) {
        kv_solve(kv, bytes, me, i);
        gpu_expect(caches[i], bytes, kv->blocks * kv->block_bytes, "cache %zu, key %llu", i,
                   (unsigned long long)kv->key);
    }
    free(bytes);
}

static int enqueue(shmem_team_t team, const struct kv *kv, void *const *caches) {
    weft_kv_caches shape = {caches, kv->caches, kv->blocks, kv->block_bytes};
    return weft_kv_shuffle(team, &shape, (const int32_t *)table(2), table(0), table(1), kv->count,
                           (weft_stream)gpu_stream);
}

static void shuffle(shmem_team_t team, const struct kv *kv, void *const *caches) {
    int me = shmem_team_my_pe(team);
    write_problem(kv, caches, me);
    expect_done(enqueue(team, kv, caches), "shuffle");
    gpu_drain(gpu_stream);
    expect_solved(kv, caches, me);
    shmem_team_sync(team);
}

/* --- Tests -------------------------------------------------------------------------------------
 */

static struct kv draw(uint64_t key, int npes) {
    struct kv kv = {.key = key, .npes = npes};
    kv.caches = 1 + kv_draw(&kv, 2, 4);
    kv.blocks = (size_t)1 << kv_draw(&kv, 3, 5);
    kv.block_bytes = kv_draw(&kv, 6, 2) ? 16 + 16 * kv_draw(&kv, 4, 30) : 1 + kv_draw(&kv, 4, 500);
    kv.count = kv_draw(&kv, 5, kv.blocks + 1);
    return kv;
}

static void all_teams(int rounds) {
    void *caches[CACHES_MAX];
    shmem_team_t half, list = gpu_list_team();
    shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 2, (shmem_n_pes() + 1) / 2, NULL, 0, &half);
    shmem_team_t teams[] = {SHMEM_TEAM_WORLD, half, list};
    for (uint64_t key = 0; key < (uint64_t)rounds; key++)
        for (size_t i = 0; i < sizeof teams / sizeof *teams; i++) {
            if (teams[i] == SHMEM_TEAM_INVALID)
                continue;
            struct kv kv = draw(key, shmem_team_n_pes(teams[i]));
            set_caches(&kv, caches);
            shuffle(teams[i], &kv, caches);
        }
}

static void many_and_large(void) {
    void *caches[CACHES_MAX];
    struct kv many = {101, shmem_n_pes(), CACHES_MAX, 4, 48, 3};
    struct kv large = {102, shmem_n_pes(), 2, 8, 40000, 8};
    tap_case("more caches than a kernel takes, and blocks of several pieces");
    for (int round = 0; round < 4; round++, many.key += 10, large.key += 10) {
        set_caches(&many, caches);
        shuffle(SHMEM_TEAM_WORLD, &many, caches);
        set_caches(&large, caches);
        shuffle(SHMEM_TEAM_WORLD, &large, caches);
    }
}

/* PEs share blocks if they are on one host and reach each other's GPUs. */
static void shared_blocks(void) {
    enum { CACHES = 3, BYTES = 1 << 16 };
    tap_case("caches in blocks that the team shares");
    int npes = shmem_n_pes(), pes[64];
    void *caches[CACHES];
    shmemx_block_t blocks[CACHES];
    shmemx_share_t shares[CACHES];
    for (int i = 0; i < npes; i++)
        pes[i] = i;
    if (getenv("WEFT_PRETEND_HOSTS") || getenv("WEFT_FAKE_NO_PEER"))
        return;
    for (int i = 0; i < CACHES; i++) {
        expect_done(shmemx_block_alloc(SHMEMX_SPACE_DEVICE, BYTES, &blocks[i]), "block");
        expect_done(shmemx_share_attach(blocks[i], pes, npes, (uint64_t)i, &shares[i]), "share");
        caches[i] = shmemx_block_ptr(blocks[i]);
    }
    for (uint64_t key = 200; key < 206; key++) {
        struct kv kv = {key, npes, CACHES, 16, 320, 11};
        shuffle(SHMEM_TEAM_WORLD, &kv, caches);
    }
    for (int i = 0; i < CACHES; i++) {
        shmemx_share_release(shares[i]);
        shmemx_block_free(blocks[i]);
    }
}

static struct kv captured;
static void *captured_caches[CACHES_MAX];

static void capture(void) {
    expect_done(enqueue(SHMEM_TEAM_WORLD, &captured, captured_caches), "capture");
}

static void graph(void) {
    tap_case("a graph, replayed with other pairs and tables");
    captured = (struct kv){300, shmem_n_pes(), 3, 16, 272, 9};
    set_caches(&captured, captured_caches);
    weft_cu_graph_exec exec = graph_capture(gpu_stream, capture);
    for (int round = 0; round < gpu_rounds_together(2000, 12); round++) {
        captured.key++;
        write_problem(&captured, captured_caches, shmem_my_pe());
        graph_replay(exec, gpu_stream);
        gpu_drain(gpu_stream);
        expect_solved(&captured, captured_caches, shmem_my_pe());
        shmem_barrier_all();
    }
    graph_drop(exec);
}

/* On PE 0 only: the others notice nothing. */
static void wrong_arguments(void) {
    tap_case("a wrong argument is an error of its member, and the next call works");
    void *caches[CACHES_MAX], *none[] = {NULL};
    struct kv kv = {400, shmem_n_pes(), 1, 16, 64, 9};
    set_caches(&kv, caches);
    if (shmem_my_pe() == 0) {
        int rc = enqueue(SHMEM_TEAM_WORLD, &kv, none);
        EXPECT(rc == -EINVAL && strstr(weft_last_error(), "caches->at[0] is NULL"), "%d: %s", rc,
               weft_last_error());
    }
    shuffle(SHMEM_TEAM_WORLD, &kv, caches);
}

int main(void) {
    shmem_init();
    gpu_start();
    cache_room = allocated(shmemx_malloc(SHMEMX_SPACE_DEVICE, ROOM));
    numbers_room = allocated(shmemx_malloc(SHMEMX_SPACE_DEVICE, 3 * NUMBERS));
    tap_case("all teams");
    all_teams(gpu_rounds_together(60, 12));
    many_and_large();
    shared_blocks();
    graph();
    wrong_arguments();
    return gpu_finish();
}
