/* SPDX-License-Identifier: BSD-3-Clause */
/* Marked words, as coll/marked.h has them: units of 16 bytes of them, which are stored and loaded
 * whole, though each word of them stands for itself.
 *
 * The inbox of a member: [channel][slot][source, but itself][unit]. Two slots, by the epoch's
 * parity, are for what is sent first in a call. The third is for answers: who answers a member has
 * heard that it is in this call, and so has read the answers of the one before. */
#ifndef WEFT_COLL_MARKED_CUH
#define WEFT_COLL_MARKED_CUH

#include "transport/gpu_channel.cuh"

enum { WEFT_MARKED_ANSWER = 2, WEFT_MARKED_SLOTS = 3 };

/* Code is short where loops are not long. */
#ifdef __CUDACC__
#define ROLLED _Pragma("unroll 1")
#else
#define ROLLED
#endif

static const uint32_t WEFT_MARK = 0xffffffff, WEFT_UNMARKED = 0x7fffffff;

WEFT_DEVICE uint32_t weft_unmark(uint32_t word) {
    return word == WEFT_MARK ? WEFT_UNMARKED : word;
}

WEFT_DEVICE struct weft_quad weft_unmark(struct weft_quad unit) {
    return {weft_unmark(unit.a), weft_unmark(unit.b), weft_unmark(unit.c), weft_unmark(unit.d)};
}

/* Not all of it has come. */
WEFT_DEVICE bool weft_is_marked(struct weft_quad unit) {
    return unit.a == WEFT_MARK || unit.b == WEFT_MARK || unit.c == WEFT_MARK || unit.d == WEFT_MARK;
}

/* Where `source` writes for another member. */
WEFT_DEVICE struct weft_quad *weft_marked_at(const struct weft_gpu_channels &channels, int member,
                                             uint32_t channel, uint32_t slot, int source) {
    uint32_t number = (channel * WEFT_MARKED_SLOTS + slot) * (uint32_t)(channels.n - 1) +
                      (uint32_t)(source - (source > member));
    return (struct weft_quad *)weft_array_at(&channels.inbox, member) +
           (size_t)number * channels.slot_units;
}

/* Unit `at` of the own inbox, of members first, first + 1, ... of n, but the own one: all are asked
 * for together until each has come. False when the job is over. */
template <int BATCH>
WEFT_DEVICE bool weft_marked_take(struct weft_quad (&units)[BATCH],
                                  const struct weft_gpu_channels &channels, uint32_t slot,
                                  int first, uint32_t at, struct weft_gpu_abort abort) {
    struct weft_quad *from =
        weft_marked_at(channels, channels.me, weft_block_index(), slot, 0) + at;
    struct weft_quad *places[BATCH];
    uint32_t missing = 0;
    WEFT_UNROLL
    for (int k = 0; k < BATCH; k++) {
        int member = first + k;
        places[k] = from + (size_t)(member - (member > channels.me)) * channels.slot_units;
        missing |= (uint32_t)(member < channels.n && member != channels.me) << k;
    }
    uint32_t wanted = missing;
    struct weft_spin spin = {};
    ROLLED
    while (missing) {
        WEFT_UNROLL
        for (int k = 0; k < BATCH; k++)
            if (missing >> k & 1)
                units[k] = weft_ld_relaxed_sys(places[k]);
        WEFT_UNROLL
        for (int k = 0; k < BATCH; k++)
            if ((missing >> k & 1) && !weft_is_marked(units[k]))
                missing &= ~(1u << k);
        if (missing && !weft_spin(&spin, abort))
            return false;
    }
    WEFT_UNROLL
    for (int k = 0; k < BATCH; k++)
        if (wanted >> k & 1)
            weft_st_relaxed_sys(places[k], {WEFT_MARK, WEFT_MARK, WEFT_MARK, WEFT_MARK});
    return true;
}

#endif
