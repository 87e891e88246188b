/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: weft_kv_shuffle on the host, byte for byte: random pairs, members without a pair,
 * tables with adjacent blocks and with entries that are skipped; heap and static memory, and blocks
 * that a team shares; every team; wrong pairs, numbers of blocks and arguments, which are an error
 * of all members and write nothing. */
#include <errno.h>
#include <shmemx.h>
#include "expect.h"
#include "kv.h"
#include "ops/tensor.h"

enum { CACHES_MAX = 5 };

static weft_kv_caches shape_of(const struct kv *kv, void *const *at) {
    return (weft_kv_caches){at, kv->caches, kv->blocks, kv->block_bytes};
}

static void shuffle(const struct test_team *t, const struct kv *kv, void *const *caches) {
    weft_kv_caches shape = shape_of(kv, caches);
    struct kv_member m = kv_member_new(kv, t->me);
    bool sends = m.pair[0] >= 0 && m.pair[1] == WEFT_KV_SENDS;
    unsigned char *expected = malloc(kv->blocks * kv->block_bytes);
    for (size_t i = 0; i < kv->caches; i++)
        kv_fill_cache(kv, caches[i], t->me, i);
    int error = weft_kv_shuffle(t->team, &shape, m.pair, sends ? m.from : NULL, sends ? m.to : NULL,
                                sends ? kv->count : 0, WEFT_STREAM_HOST);
    EXPECT(error == 0, "%d: %s", error, weft_last_error());
    for (size_t i = 0; i < kv->caches; i++) {
        kv_solve(kv, expected, t->me, i);
        EXPECT(memcmp(expected, caches[i], kv->blocks * kv->block_bytes) == 0,
               "%s key %llu cache %zu", t->name, (unsigned long long)kv->key, i);
    }
    free(expected);
    kv_member_free(&m);
}

static struct kv draw(uint64_t key, int npes) {
    struct kv kv = {.key = key, .npes = npes};
    kv.caches = 1 + kv_draw(&kv, 2, CACHES_MAX);
    kv.blocks = (size_t)1 << kv_draw(&kv, 3, 6);
    kv.block_bytes = 1 + kv_draw(&kv, 4, 900);
    kv.count = kv_draw(&kv, 5, kv.blocks + 1);
    return kv;
}

/* Caches in the heap, or every second one in static memory. All PEs use the same offsets. */
static void in_symmetric_memory(const struct test_team *t, uint64_t key) {
    struct kv kv = draw(key, t->npes);
    void *caches[CACHES_MAX];
    for (size_t i = 0; i < kv.caches; i++)
        caches[i] = memory_new(i % 2 ? STATICS : HEAP, kv.blocks * kv.block_bytes);
    shuffle(t, &kv, caches);
    tensors_reset();
    if (t->npes > 1)
        shmem_team_sync(t->team); /* a peer's call ends before this PE reuses its memory */
}

static void in_shared_blocks(const struct test_team *t, uint64_t key) {
    struct kv kv = draw(key, t->npes);
    void *caches[CACHES_MAX];
    shmemx_block_t blocks[CACHES_MAX];
    shmemx_share_t shares[CACHES_MAX];
    int pes[64];
    for (int i = 0; i < t->npes; i++)
        pes[i] = t->start + i * t->stride;
    for (size_t i = 0; i < kv.caches; i++) {
        EXPECT(shmemx_block_alloc(SHMEMX_SPACE_HOST, kv.blocks * kv.block_bytes, &blocks[i]) == 0,
               "%s", weft_last_error());
        EXPECT(shmemx_share_attach(blocks[i], pes, t->npes, i, &shares[i]) == 0, "%s",
               weft_last_error());
        caches[i] = shmemx_block_ptr(blocks[i]);
    }
    shuffle(t, &kv, caches);
    for (size_t i = 0; i < kv.caches; i++) {
        shmemx_share_release(shares[i]);
        shmemx_block_free(blocks[i]);
    }
}

/* --- Errors ----------------------------------------------------------------------------------- */

/* All members call with these arguments except the last one, which calls with the wrong ones. */
struct arguments {
    weft_kv_caches caches;
    int32_t pair[2];
    int64_t from[2], to[2];
    size_t count;
};

static void expect_refused(const struct test_team *t, const struct arguments *right,
                           const struct arguments *wrong, const char *text) {
    const struct arguments *a = t->me == t->npes - 1 ? wrong : right;
    expect_error(
        weft_kv_shuffle(t->team, &a->caches, a->pair, a->from, a->to, a->count, WEFT_STREAM_HOST),
        -EINVAL, text);
}

static void wrong_arguments(const struct test_team *t) {
    enum { BLOCKS = 4, BYTES = 24 };
    unsigned char *cache = memory_new(HEAP, BLOCKS * BYTES), unchanged[BLOCKS * BYTES], mine[BYTES];
    void *const at[] = {cache}, *const private_at[] = {mine}, *const no_at[] = {NULL};
    memset(cache, GUARD, BLOCKS * BYTES);
    memset(unchanged, GUARD, BLOCKS * BYTES);
    int last = t->npes - 1;
    struct arguments right = {{at, 1, BLOCKS, BYTES}, {-1, 0}, {0, 1}, {2, 3}, 2}, wrong = right;
    if (t->npes > 1 && (t->me == 0 || t->me == last)) {
        right.pair[0] = t->me == 0 ? last : 0;
        right.pair[1] = t->me == 0 ? WEFT_KV_RECEIVES : WEFT_KV_SENDS;
        wrong = right;
        wrong.from[1] = BLOCKS;
        expect_refused(t, &right, &wrong, "from_blocks[1] is 4, but a cache has 4 blocks");
        wrong = right;
        wrong.to[0] = -1;
        expect_refused(t, &right, &wrong, "to_blocks[0] is -1");
    } else if (t->npes > 1) {
        expect_refused(t, &right, &right, "from_blocks[1] is 4");
        expect_refused(t, &right, &right, "to_blocks[0] is -1");
    }
    if (t->npes > 1) {
        wrong = right;
        wrong.pair[1] = WEFT_KV_RECEIVES;
        expect_refused(t, &right, &wrong, "must name each other");
        wrong.pair[0] = last;
        expect_refused(t, &right, &wrong, "pass another member");
        wrong.pair[0] = -1;
        expect_refused(t, &right, &wrong, "must name each other");
        wrong = right;
        wrong.caches.block_bytes = 8;
        expect_refused(t, &right, &wrong, "caches->block_bytes is");
    }
    wrong = right;
    wrong.caches.at = no_at;
    expect_refused(t, &right, &wrong, "caches->at[0] is NULL");
    wrong.caches.at = private_at;
    wrong.caches.blocks = 1;
    expect_refused(t, &right, &wrong, "not symmetric");
    EXPECT(memcmp(cache, unchanged, sizeof unchanged) == 0, "a cache was written");
    tensors_reset();
}

int main(void) {
    tensors_open(false);
    struct test_team teams[4];
    int nteams = teams_open(teams);
    tap_case("symmetric memory");
    for (uint64_t key = 0; key < 80; key++)
        for (int team = 0; team < nteams; team++)
            in_symmetric_memory(&teams[team], key);
    tap_case("blocks that the team shares");
    bool far = getenv("WEFT_PRETEND_HOSTS") || getenv("WEFT_TEST_HOSTS");
    for (uint64_t key = 100; key < 110 && !far; key++)
        for (int team = 0; team < nteams; team++)
            in_shared_blocks(&teams[team], key);
    tap_case("wrong arguments are an error of all members");
    for (int team = 0; team < nteams; team++)
        wrong_arguments(&teams[team]);
    shmem_finalize();
    return tap_finish();
}
