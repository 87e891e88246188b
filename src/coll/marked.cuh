/* SPDX-License-Identifier: BSD-3-Clause */
/* Marked words, as coll/marked.h has them: units of 16 bytes of them, which are stored and loaded
 * whole, though each word of them stands for itself.
 *
 * The inbox of a member: [channel][slot][source, but itself][unit]. Two slots, by the epoch's
 * parity, are for what is sent first in a call. The third is for answers: who answers a member has
 * heard that it is in this call, and so has read the answers of the one before. */
#ifndef WEFT_COLL_MARKED_CUH
#define WEFT_COLL_MARKED_CUH

#include "coll/marked.h"
#include "transport/gpu_channel.cuh"

enum { WEFT_MARKED_ANSWER = 2, WEFT_MARKED_SLOTS = 3 };

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

/* The first unit of the block's slot that is source number 0's, within an inbox. */
WEFT_DEVICE uint32_t weft_marked_slot(const struct weft_marked_work &work, uint32_t slot) {
    return (weft_block_index() * WEFT_MARKED_SLOTS + slot) * (uint32_t)(work.n - 1) *
           work.slot_units;
}

/* Where this member writes unit `at` of a slot for another member. */
WEFT_DEVICE struct weft_quad *weft_marked_place(const struct weft_marked_work &work, int member,
                                                uint32_t slot, uint32_t at) {
    uint32_t source = (uint32_t)(work.me - (work.me > member));
    struct weft_quad *inbox = (struct weft_quad *)(work.inboxes + member * work.inbox_step);
    return inbox + (weft_marked_slot(work, slot) + source * work.slot_units + at);
}

/* Members other than this one are numbered in their order. */
WEFT_DEVICE int weft_marked_other(const struct weft_marked_work &work, int number) {
    return number + (number >= work.me);
}

/* A bit for each of OTHERS of them from `first` on, as far as there are as many. */
template <int OTHERS>
WEFT_DEVICE uint32_t weft_marked_others(const struct weft_marked_work &work, int first) {
    uint32_t left = (uint32_t)(work.n - 1 - first);
    return left < OTHERS ? (1u << left) - 1 : (1u << OTHERS) - 1;
}

/* The pairs of a round's units u and of others m, as the set of all u * OTHERS + m. */
template <int UNITS, int OTHERS>
WEFT_DEVICE uint32_t weft_marked_pairs(uint32_t set, uint32_t others) {
    uint32_t pairs = 0;
    WEFT_UNROLL
    for (int u = 0; u < UNITS; u++)
        pairs |= set >> u & 1 ? others << u * OTHERS : 0;
    return pairs;
}

/* Takes a round's units of OTHERS members from number `first` on from the own inbox: all are asked
 * for until they have come. False when the job is over. */
template <int UNITS, int OTHERS>
WEFT_DEVICE bool weft_marked_take(struct weft_quad (&quads)[UNITS * OTHERS],
                                  const struct weft_marked_work &work, uint32_t slot, int first,
                                  const struct weft_marked_round &round,
                                  struct weft_gpu_abort abort) {
    struct weft_quad *inbox = (struct weft_quad *)(work.inboxes + work.me * work.inbox_step);
    inbox += weft_marked_slot(work, slot) + (uint32_t)first * work.slot_units + round.at;
    uint32_t wanted =
        weft_marked_pairs<UNITS, OTHERS>(round.set, weft_marked_others<OTHERS>(work, first));
    uint32_t missing = wanted;
    struct weft_spin spin = {};
    WEFT_ROLLED
    while (missing) {
        WEFT_UNROLL
        for (int k = 0; k < UNITS * OTHERS; k++)
            if (missing >> k & 1)
                quads[k] = weft_ld_relaxed_sys(&inbox[(uint32_t)(k % OTHERS) * work.slot_units +
                                                      (uint32_t)(k / OTHERS) * round.step]);
        WEFT_UNROLL
        for (int k = 0; k < UNITS * OTHERS; k++)
            if ((missing >> k & 1) && !weft_is_marked(quads[k]))
                missing &= ~(1u << k);
        if (missing && !weft_spin(&spin, abort))
            return false;
    }
    WEFT_UNROLL
    for (int k = 0; k < UNITS * OTHERS; k++)
        if (wanted >> k & 1)
            weft_st_relaxed_sys(&inbox[(uint32_t)(k % OTHERS) * work.slot_units +
                                       (uint32_t)(k / OTHERS) * round.step],
                                {WEFT_MARK, WEFT_MARK, WEFT_MARK, WEFT_MARK});
    return true;
}

#endif
