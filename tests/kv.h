/* SPDX-License-Identifier: BSD-3-Clause */
/* Problems for weft_kv_shuffle, and their solutions. All PEs compute the pairs, the tables and the
 * bytes of all members' caches from a key. */
#ifndef TESTS_KV_H
#define TESTS_KV_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <weft.h>

struct kv {
    uint64_t key;
    int npes;
    size_t caches, blocks, block_bytes;
    size_t count; /* entries of the tables */
};

/* What a member passes. */
struct kv_member {
    int32_t pair[2];
    int64_t *from, *to;
};

static inline uint64_t kv_draw(const struct kv *kv, uint64_t what, uint64_t below) {
    uint64_t x = kv->key * 0x9e3779b97f4a7c15u + what * 0xd1342543de82ef95u + 1;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return (x ^ (x >> 31)) % below;
}

/* Returns the other member of a pair, or -1. Members are paired by their distance. */
static inline int kv_peer(const struct kv *kv, int member) {
    int distance = 1 + (int)kv_draw(kv, 1, (uint64_t)kv->npes);
    int base = member / (2 * distance) * 2 * distance, within = member - base;
    int peer = base + (within < distance ? within + distance : within - distance);
    uint64_t low = (uint64_t)(peer < member ? peer : member);
    return peer < kv->npes && kv_draw(kv, 100 + low, 5) > 0 ? peer : -1;
}

static inline bool kv_sends(const struct kv *kv, int member) {
    int peer = kv_peer(kv, member);
    bool low_sends = kv_draw(kv, 200 + (uint64_t)(peer < member ? peer : member), 2);
    return peer >= 0 && (peer > member ? low_sends : !low_sends);
}

/* Sets the tables of a sender: blocks of the receiver are different, some entries are skipped, and
 * some runs are adjacent. */
static inline void kv_tables(const struct kv *kv, int member, int64_t *from, int64_t *to) {
    uint64_t step =
        1 + 2 * kv_draw(kv, 300 + (uint64_t)member, 3); /* odd; blocks is a power of 2 */
    for (size_t i = 0; i < kv->count; i++) {
        uint64_t what = 1000 + (uint64_t)member * 4096 + i / 3;
        from[i] = (int64_t)((kv_draw(kv, what, kv->blocks) + i % 3) % kv->blocks);
        to[i] =
            (int64_t)((i * step + kv_draw(kv, 400 + (uint64_t)member, kv->blocks)) % kv->blocks);
        if (kv_draw(kv, what + 2048, 7) == 0)
            from[i] = -1;
    }
}

static inline struct kv_member kv_member_new(const struct kv *kv, int me) {
    struct kv_member m = {{kv_peer(kv, me), kv_sends(kv, me) ? WEFT_KV_SENDS : WEFT_KV_RECEIVES},
                          malloc(kv->count * sizeof *m.from + 1),
                          malloc(kv->count * sizeof *m.to + 1)};
    kv_tables(kv, me, m.from, m.to);
    return m;
}

static inline void kv_member_free(struct kv_member *m) {
    free(m->from);
    free(m->to);
}

/* Fills a block with the bytes that it has before the call. */
static inline void kv_fill(const struct kv *kv, unsigned char *at, int member, size_t cache,
                           size_t block) {
    for (size_t i = 0; i < kv->block_bytes; i++)
        at[i] = (unsigned char)(kv_draw(kv,
                                        (((uint64_t)member * 64 + cache) * 4096 + block) * 65536 +
                                            i / 8,
                                        UINT64_MAX) >>
                                i % 8 * 8);
}

static inline void kv_fill_cache(const struct kv *kv, unsigned char *at, int member, size_t cache) {
    for (size_t block = 0; block < kv->blocks; block++)
        kv_fill(kv, at + block * kv->block_bytes, member, cache, block);
}

/* Sets what a cache of member `me` must contain after the call. */
static inline void kv_solve(const struct kv *kv, unsigned char *at, int me, size_t cache) {
    int peer = kv_peer(kv, me);
    kv_fill_cache(kv, at, me, cache);
    if (peer < 0 || kv_sends(kv, me))
        return;
    struct kv_member sender = kv_member_new(kv, peer);
    for (size_t i = 0; i < kv->count; i++)
        if (sender.from[i] >= 0)
            kv_fill(kv, at + (size_t)sender.to[i] * kv->block_bytes, peer, cache,
                    (size_t)sender.from[i]);
    kv_member_free(&sender);
}

#endif
