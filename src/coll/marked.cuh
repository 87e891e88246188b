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

/* What a thread has under way together: units of its block, from number `at` on, `step` apart;
 * those in the set. */
struct weft_marked_round {
    uint32_t at, step, set;
};

template <int UNITS>
WEFT_DEVICE struct weft_marked_round weft_marked_round_at(uint32_t at, uint32_t count) {
    struct weft_marked_round round = {at, weft_block_threads(), 0};
    WEFT_UNROLL
    for (int u = 0; u < UNITS; u++)
        round.set |= (uint32_t)(at + (uint32_t)u * round.step < count) << u;
    return round;
}

/* The pairs of a round's units and MEMBERS members from `first` on, as the set of all u * MEMBERS +
 * m of which unit u is in `set`, and first + m is another member. */
template <int UNITS, int MEMBERS>
WEFT_DEVICE uint32_t weft_marked_set(const struct weft_gpu_channels &channels, int first,
                                     uint32_t set) {
    uint32_t pairs = 0;
    WEFT_UNROLL
    for (int k = 0; k < UNITS * MEMBERS; k++) {
        int member = first + k % MEMBERS;
        bool is_other = member < channels.n && member != channels.me;
        pairs |= (is_other ? set >> k / MEMBERS & 1 : 0) << k;
    }
    return pairs;
}

/* Takes the units of such pairs from the own inbox: all are asked for until they have come. False
 * when the job is over. */
template <int UNITS, int MEMBERS>
WEFT_DEVICE bool weft_marked_take(struct weft_quad (&units)[UNITS * MEMBERS],
                                  const struct weft_gpu_channels &channels, uint32_t slot,
                                  int first, const struct weft_marked_round &round,
                                  struct weft_gpu_abort abort) {
    enum { PAIRS = UNITS * MEMBERS };
    struct weft_quad *own = weft_marked_at(channels, channels.me, weft_block_index(), slot, 0);
    struct weft_quad *places[MEMBERS];
    WEFT_UNROLL
    for (int m = 0; m < MEMBERS; m++)
        places[m] =
            own + (size_t)(first + m - (first + m > channels.me)) * channels.slot_units + round.at;
    uint32_t wanted = weft_marked_set<UNITS, MEMBERS>(channels, first, round.set), missing = wanted;
    struct weft_spin spin = {};
    ROLLED
    while (missing) {
        WEFT_UNROLL
        for (int k = 0; k < PAIRS; k++)
            if (missing >> k & 1)
                units[k] =
                    weft_ld_relaxed_sys(places[k % MEMBERS] + (uint32_t)(k / MEMBERS) * round.step);
        WEFT_UNROLL
        for (int k = 0; k < PAIRS; k++)
            if ((missing >> k & 1) && !weft_is_marked(units[k]))
                missing &= ~(1u << k);
        if (missing && !weft_spin(&spin, abort))
            return false;
    }
    WEFT_UNROLL
    for (int k = 0; k < PAIRS; k++)
        if (wanted >> k & 1)
            weft_st_relaxed_sys(places[k % MEMBERS] + (uint32_t)(k / MEMBERS) * round.step,
                                {WEFT_MARK, WEFT_MARK, WEFT_MARK, WEFT_MARK});
    return true;
}

#endif
