/* SPDX-License-Identifier: BSD-3-Clause */
/* Marked words (coll/marked.h) in units of 16 bytes, which are stored and loaded as a whole,
 * although each word is marked separately.
 *
 * The inbox of a member: [channel][slot][source other than itself][unit]. Two slots, selected by
 * the epoch's parity, are for the data that is sent first in a call. The third is for answers: a
 * member answers another one after it has received that one's data of this call, so that one has
 * read the answers of the call before. */
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

/* Returns whether some of the unit has not arrived. */
WEFT_DEVICE bool weft_is_marked(struct weft_quad unit) {
    return unit.a == WEFT_MARK || unit.b == WEFT_MARK || unit.c == WEFT_MARK || unit.d == WEFT_MARK;
}

/* The units that a thread has in flight together: unit `at` of its block and others, `step` apart,
 * whose bits in `set` are set. */
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

/* Returns the index in an inbox of the first unit of source 0 in this block's slot. */
WEFT_DEVICE uint32_t weft_marked_slot(const struct weft_marked_work &work, uint32_t slot) {
    return (weft_block_index() * WEFT_MARKED_SLOTS + slot) * (uint32_t)(work.n - 1) *
           work.slot_units;
}

/* Returns where this member writes unit `at` of a slot for another member. */
WEFT_DEVICE struct weft_quad *weft_marked_place(const struct weft_marked_work &work, int member,
                                                uint32_t slot, uint32_t at) {
    uint32_t source = (uint32_t)(work.me - (work.me > member));
    struct weft_quad *inbox = (struct weft_quad *)(work.inboxes + member * work.inbox_step);
    return inbox + (weft_marked_slot(work, slot) + source * work.slot_units + at);
}

/* Returns the member with this number among those other than this one. */
WEFT_DEVICE int weft_marked_other(const struct weft_marked_work &work, int number) {
    return number + (number >= work.me);
}

/* Returns a bit for each of the OTHERS members from `first` on that exist. */
template <int OTHERS>
WEFT_DEVICE uint32_t weft_marked_others(const struct weft_marked_work &work, int first) {
    uint32_t left = (uint32_t)(work.n - 1 - first);
    return left < OTHERS ? (1u << left) - 1 : (1u << OTHERS) - 1;
}

/* Returns the pairs of a round's units u and of others m, as the set of all u * OTHERS + m. */
template <int UNITS, int OTHERS>
WEFT_DEVICE uint32_t weft_marked_pairs(uint32_t set, uint32_t others) {
    uint32_t pairs = 0;
    WEFT_UNROLL
    for (int u = 0; u < UNITS; u++)
        pairs |= set >> u & 1 ? others << u * OTHERS : 0;
    return pairs;
}

/* Receives a round's units of OTHERS members, from number `first` on, from this member's inbox:
 * polls all of them until they have arrived. Returns false when the job is over. */
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
