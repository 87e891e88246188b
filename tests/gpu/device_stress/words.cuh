/* SPDX-License-Identifier: BSD-3-Clause */
/* Rounds of words: single ones that are polled, atomics, and packets. */
#ifndef TESTS_GPU_DEVICE_STRESS_WORDS_CUH
#define TESTS_GPU_DEVICE_STRESS_WORDS_CUH

#include "gpu/device_stress/puts.cuh"

/* --- Words ---------------------------------------------------------------------------------------
 */

/* Each thread puts one word to every member, and gets one from each. */
STRESS_PART int run_words(const struct stress_round *r) {
    uint32_t id = weft_block_rank(), count = weft_block_size(), n = (uint32_t)r->t->n;
    uint32_t mine = (uint32_t)r->t->me * count + id, narrow = r->variant % 2;
    uint64_t *words = words_of(r);
    if (count * n > STRESS_WORDS)
        return 1;
    for (int d = 0; d < r->t->n; d++)
        if (narrow)
            weft_p32(r->t, (uint32_t *)&words[mine], mix(r->key + mine) | 1, member_at(r, d));
        else
            weft_p64(r->t, &words[mine], value_of(r, (int)mine), member_at(r, d));
    for (int d = 0; d < r->t->n; d++) {
        int from = member_at(r, d);
        uint32_t at = (uint32_t)from * count + id;
        int met = narrow ? weft_wait_until32(r->t, (uint32_t *)&words[at], WEFT_CMP_NE, 0)
                         : weft_wait_until_relaxed(r->t, &words[at], WEFT_CMP_NE, 0);
        if (!met)
            return 0;
        expect(r, from, (int32_t)id, weft_ld_relaxed_sys_u64(&words[at]),
               narrow ? mix(r->key + at) | 1 : value_of(r, (int)at));
    }
    if (!meet(r, r->variant / 4))
        return 0;
    for (int d = 0; d < r->t->n; d++) { /* and reads its own word at all members */
        int m = member_at(r, d);
        uint64_t found =
            narrow ? weft_g32(r->t, (uint32_t *)&words[mine], m) : weft_g64(r->t, &words[mine], m);
        expect(r, m, -2, found, narrow ? mix(r->key + mine) | 1 : value_of(r, (int)mine));
    }
    return meet(r, r->variant / 8);
}

/* --- Atomics -------------------------------------------------------------------------------------
 */

/* Words of a block: sums, chains, and a bit or a ticket of each of all members' threads. */
enum {
    SUM = 0,
    FETCHED = 1,
    SWAPPED = 2,
    SWAPS = 3,
    CLAIMS = 4,
    TURNED = 5,
    BITS = 16,
    TICKETS = 128
};

#define STRESS_ATOMICS(bits)                                                                      \
    WEFT_DEVICE uint##bits##_t *word##bits(uint64_t *words, uint32_t i) {                         \
        return (uint##bits##_t *)words + i;                                                       \
    }                                                                                             \
    STRESS_PART void change##bits(const struct stress_round *r, uint32_t i, int m) {              \
        const weft_device_team *t = r->t;                                                         \
        uint64_t *words = words_of(r);                                                            \
        uint##bits##_t bit = (uint##bits##_t)1 << i % bits, before = 0;                           \
        uint##bits##_t *row = word##bits(words + BITS, i / bits);                                 \
        if (i % 2)                                                                                \
            weft_atomic_add##bits(t, word##bits(words + SUM, 0), i + 1, m);                       \
        else                                                                                      \
            (void)weft_atomic_fetch_add##bits(t, word##bits(words + SUM, 0), i + 1, m);           \
        uint##bits##_t ticket =                                                                   \
            weft_atomic_fetch_add##bits(t, word##bits(words + FETCHED, 0), 1, m);                 \
        weft_atomic_set##bits(t, word##bits(words + TICKETS, (uint32_t)ticket), 1, m);            \
        before = weft_atomic_swap##bits(t, word##bits(words + SWAPPED, 0), i + 1, m);             \
        weft_atomic_add##bits(t, word##bits(words + SWAPS, 0), before, m);                        \
        if (i % 2) {                                                                              \
            weft_atomic_or##bits(t, row, bit, m);                                                 \
            weft_atomic_xor##bits(t, row + 512 / bits, bit, m);                                   \
            weft_atomic_or##bits(t, row + 1024 / bits, bit, m);                                   \
            weft_atomic_and##bits(t, row + 1024 / bits, (uint##bits##_t) ~bit, m);                \
        } else {                                                                                  \
            before = weft_atomic_fetch_or##bits(t, row, bit, m);                                  \
            before |= weft_atomic_fetch_xor##bits(t, row + 512 / bits, bit, m);                   \
            before |= weft_atomic_fetch_or##bits(t, row + 1024 / bits, bit, m);                   \
            before |=                                                                             \
                ~weft_atomic_fetch_and##bits(t, row + 1024 / bits, (uint##bits##_t) ~bit, m);     \
            expect(r, m, (int32_t)i, before &bit, 0);                                             \
        }                                                                                         \
        if (i % WEFT_WARP_LANES == 0)                                                             \
            for (uint##bits##_t seen = 0, was;                                                    \
                 (was = weft_atomic_compare_swap##bits(t, word##bits(words + CLAIMS, 0), seen,    \
                                                       (uint##bits##_t)(seen + 1), m)) != seen;)  \
                seen = was;                                                                       \
    }                                                                                             \
    STRESS_PART void check_changes##bits(const struct stress_round *r, uint32_t i, uint32_t all,  \
                                         int m) {                                                 \
        uint64_t *words = words_of(r);                                                            \
        uint64_t sum = (uint64_t)all * (all + 1) / 2;                                             \
        uint##bits##_t *row = word##bits(words + BITS, i / bits);                                 \
        const weft_device_team *t = r->t;                                                         \
        if (i % WEFT_WARP_LANES == 0) {                                                           \
            expect(r, m, -1, weft_atomic_fetch##bits(t, word##bits(words + SUM, 0), m), sum);     \
            expect(r, m, -2, weft_atomic_fetch##bits(t, word##bits(words + FETCHED, 0), m), all); \
            expect(r, m, -3,                                                                      \
                   weft_atomic_fetch##bits(t, word##bits(words + SWAPPED, 0), m) +                \
                       weft_atomic_fetch##bits(t, word##bits(words + SWAPS, 0), m),               \
                   sum);                                                                          \
            expect(r, m, -4, weft_atomic_fetch##bits(t, word##bits(words + CLAIMS, 0), m),        \
                   all / WEFT_WARP_LANES);                                                        \
        }                                                                                         \
        expect(r, m, -5, weft_atomic_fetch##bits(t, word##bits(words + TICKETS, i), m), 1);       \
        expect(r, m, -6, weft_atomic_fetch##bits(t, row, m) >> i % bits & 1, 1);                  \
        expect(r, m, -7, weft_atomic_fetch##bits(t, row + 512 / bits, m) >> i % bits & 1, 1);     \
        expect(r, m, -8, weft_atomic_fetch##bits(t, row + 1024 / bits, m) >> i % bits & 1, 0);    \
    }
STRESS_ATOMICS(32)
STRESS_ATOMICS(64)
#undef STRESS_ATOMICS

/* At most 512 threads of all members take part. */
STRESS_PART int run_atomics(const struct stress_round *r) {
    uint32_t each = 512 / (uint32_t)r->t->n / WEFT_WARP_LANES * WEFT_WARP_LANES;
    uint32_t id = weft_block_rank(), count = weft_block_size() < each ? weft_block_size() : each;
    uint32_t mine = (uint32_t)r->t->me * count + id, all = (uint32_t)r->t->n * count;
    bool narrow = r->variant % 2;
    for (int d = 0; d < r->t->n && id < count; d++)
        if (narrow)
            change32(r, mine, member_at(r, d));
        else
            change64(r, mine, member_at(r, d));
    if (!meet(r, r->variant / 4))
        return 0;
    for (int d = 0; d < r->t->n && id < count; d++)
        if (narrow)
            check_changes32(r, mine, all, member_at(r, d));
        else
            check_changes64(r, mine, all, member_at(r, d));
    return meet(r, r->variant / 8);
}

/* --- Packets -------------------------------------------------------------------------------------
 */

WEFT_DEVICE uint64_t packet_of(const struct stress_round *r, int member, uint32_t unit) {
    uint32_t low = mix(r->key + (uint32_t)member * 0x51ed270bu + unit);
    return (uint64_t)(low % 4 == 0 ? (uint32_t)r->number : mix(low)) << 32 | (low % 3 ? low : 0);
}

/* Several epochs in succession, with nothing between them. */
STRESS_PART int run_packets(const struct stress_round *r) {
    uint32_t id = weft_block_rank(), count = weft_block_size(), channel = weft_block_index();
    uint32_t each = 1 + r->variant % STRESS_PACKETS, epochs = 1 + r->variant / 8 % 4, given_up = 0;
    uint64_t epoch = 0, data = 0;
    for (uint32_t k = 0; k < epochs; k++) {
        epoch =
            k && r->variant & 64 ? weft_ll_epoch_next(epoch) : weft_ll_epoch_begin(r->t, channel);
        for (uint32_t unit = id; unit < each * count; unit += count) {
            uint32_t what = unit + k * STRESS_PACKETS * STRESS_THREADS;
            if (r->variant % 3 == 0)
                weft_ll_bcast(r->t, channel, unit, packet_of(r, r->t->me, what), epoch);
            for (int d = 1; d < r->t->n && r->variant % 3; d++)
                weft_ll_send(r->t, channel, unit, packet_of(r, r->t->me, what), epoch,
                             member_at(r, d));
        }
        for (uint32_t unit = id; unit < each * count; unit += count)
            for (int d = 1; d < r->t->n && !given_up; d++) {
                int from = member_at(r, d);
                uint32_t what = unit + k * STRESS_PACKETS * STRESS_THREADS;
                given_up = !weft_ll_recv(r->t, channel, unit, from, epoch, &data);
                if (!given_up)
                    expect(r, from, (int32_t)unit, data, packet_of(r, from, what));
            }
        weft_ll_epoch_end(r->t, channel, epoch);
        if (weft_block_sync_any(given_up))
            return 0;
    }
    return 1;
}

#endif
