/* SPDX-License-Identifier: BSD-3-Clause */
/* Rounds of units of 16 bytes, which a thread loads, sends to all members, and adds to those of all
 * members when they have arrived (coll/marked.h). */
#ifndef WEFT_COLL_MARKED_FOLD_CUH
#define WEFT_COLL_MARKED_FOLD_CUH

#include "coll/fold.cuh"
#include "coll/marked.cuh"

/* --- Units of arrays ------------------------------------------------------------------------- */

/* A round's units in a member's block of an array: unit u begins u * step bytes after the first;
 * `whole` is the set of those that are 16 aligned bytes. */
struct marked_units {
    char *first;
    uint32_t step, set, whole;
    ptrdiff_t left; /* bytes of the array from the first unit on */
};

template <int UNITS>
WEFT_DEVICE struct marked_units units_in(const struct weft_marked_array &array, int member,
                                         uint32_t begin, const struct weft_marked_round &round) {
    uint32_t less = (uint32_t)member * array.less, unit = begin + round.at;
    uint32_t whole = array.whole > less ? array.whole - less : 0;
    struct marked_units units = {array.first + (ptrdiff_t)member * array.step + (size_t)unit * 16,
                                 round.step * 16, round.set, 0,
                                 array.bytes - (ptrdiff_t)less * 16 - (ptrdiff_t)unit * 16};
    WEFT_UNROLL
    for (int u = 0; u < UNITS; u++)
        units.whole |= (uint32_t)(unit + (uint32_t)u * round.step < whole) << u;
    units.whole &= round.set;
    return units;
}

WEFT_DEVICE struct weft_quad load_whole(const char *at) {
    struct weft_quad unit;
    number_vector whole = *(const number_vector *)at;
    memcpy(&unit, &whole, sizeof unit);
    return unit;
}

/* Loads numbers of BYTES bytes, and zeros after the end. */
template <int BYTES> WEFT_DEVICE struct weft_quad load_partial(const char *from, ptrdiff_t left) {
    uint32_t words[4] = {0, 0, 0, 0};
    WEFT_UNROLL
    for (int at = 0; at < 16; at += BYTES)
        if (at < left)
            words[at / 4] |=
                (BYTES == 4 ? *(const uint32_t *)(from + at) : *(const uint16_t *)(from + at))
                << at % 4 * 8;
    return {words[0], words[1], words[2], words[3]};
}

/* Loads the members whose bits are set: quad u * OTHERS + m is unit u of the block for
 * member_of(m). Whole units are loaded together, and then the others number by number, of type
 * T. */
template <class T, int UNITS, int OTHERS, class Member>
WEFT_DEVICE void load(struct weft_quad (&quads)[UNITS * OTHERS],
                      const struct weft_marked_array &array, uint32_t begin,
                      const struct weft_marked_round &round, uint32_t members, Member member_of) {
    uint32_t partial = weft_marked_pairs<UNITS, OTHERS>(round.set, members);
    WEFT_UNROLL
    for (int m = 0; m < OTHERS; m++) {
        struct marked_units units = units_in<UNITS>(array, member_of(m), begin, round);
        WEFT_UNROLL
        for (int u = 0; u < UNITS; u++)
            if (members >> m & units.whole >> u & 1) {
                quads[u * OTHERS + m] = load_whole(units.first + (size_t)u * units.step);
                partial &= ~(1u << (u * OTHERS + m));
            }
    }
    WEFT_ROLLED
    for (int i = 0; partial >> i; i++)
        if (partial >> i & 1) {
            struct marked_units units = units_in<1>(array, member_of(i % OTHERS), begin, round);
            ptrdiff_t offset = (ptrdiff_t)(i / OTHERS) * units.step;
            struct weft_quad quad =
                load_partial<sizeof(T)>(units.first + offset, units.left - offset);
            WEFT_UNROLL
            for (int k = 0; k < UNITS * OTHERS; k++)
                if (k == i)
                    quads[k] = quad;
        }
}

/* --- Rounds ---------------------------------------------------------------------------------- */

/* A block's part of this call. */
struct marked_call {
    const struct weft_marked_work &work;
    struct weft_gpu_abort abort;
    uint32_t slot;         /* selected by the epoch's parity */
    uint32_t begin, count; /* the units of each block of the arrays */
};

/* Kernels for few members handle all other members together; the kernel for the most members
 * loops. */
enum { MEMBERS_MANY = 8 };
template <int OTHERS> WEFT_DEVICE int others_end(const struct weft_marked_work &work) {
    return OTHERS + 1 < MEMBERS_MANY ? 1 : work.n - 1;
}

template <int UNITS>
WEFT_DEVICE void send_to_all(const struct marked_call &call, uint32_t slot,
                             const struct weft_marked_round &round,
                             const struct weft_quad (&quads)[UNITS]) {
    WEFT_ROLLED
    for (int distance = 1; distance < call.work.n; distance++) {
        int member = weft_gpu_member_after(call.work.me, call.work.n, distance);
        struct weft_quad *to = weft_marked_place(call.work, member, slot, round.at);
        WEFT_UNROLL
        for (int u = 0; u < UNITS; u++)
            if (round.set >> u & 1)
                weft_st_relaxed_sys(to + (uint32_t)u * round.step, quads[u]);
    }
}

/* Loads this member's block for itself, or the only block. */
template <class T, int UNITS>
WEFT_DEVICE void load_own(struct weft_quad (&own)[UNITS], const struct marked_call &call,
                          const struct weft_marked_round &round) {
    load<T, UNITS, 1>(own, call.work.from, call.begin, round, 1, [&](int) { return call.work.me; });
    WEFT_UNROLL
    for (int u = 0; u < UNITS; u++)
        own[u] = weft_unmark(own[u]);
}

/* Adds the units of other member number m. */
template <class T, int UNITS, int OTHERS>
WEFT_DEVICE void add_units(weft_unpacked<T, struct weft_quad> (&sums)[UNITS],
                           const struct weft_quad (&quads)[UNITS * OTHERS], int m) {
    WEFT_UNROLL
    for (int u = 0; u < UNITS; u++)
        fold_word<fold_sum>(&sums[u], quads[u * OTHERS + m]);
}

/* Folds the units of all members in their order: this member's own units precede those of the other
 * member with its number, or are the last. A sum that begins with -0 keeps all bits of the first
 * number. */
template <class T, int UNITS, int OTHERS>
WEFT_DEVICE bool fold_round(struct weft_quad (&folded)[UNITS], const struct marked_call &call,
                            const struct weft_marked_round &round) {
    const struct weft_marked_work &work = call.work;
    struct weft_quad own[UNITS], quads[UNITS * OTHERS];
    weft_unpacked<T, struct weft_quad> sums[UNITS];
    load_own<T, UNITS>(own, call, round);
    WEFT_UNROLL
    for (int k = 0; k < UNITS * sums->N; k++)
        sums[k / sums->N].of[k % sums->N] = -0.0f;
    int own_before = work.me < work.n - 1 ? work.me : -1;
    WEFT_ROLLED
    for (int first = 0; first < others_end<OTHERS>(work); first += OTHERS) {
        if (!weft_marked_take<UNITS, OTHERS>(quads, work, call.slot, first, round, call.abort))
            return false;
        WEFT_UNROLL
        for (int m = 0; m < OTHERS; m++) {
            if (first + m == own_before)
                add_units<T, UNITS, 1>(sums, own, 0);
            if (first + m < work.n - 1)
                add_units<T, UNITS, OTHERS>(sums, quads, m);
        }
    }
    if (own_before < 0)
        add_units<T, UNITS, 1>(sums, own, 0);
    WEFT_UNROLL
    for (int u = 0; u < UNITS; u++)
        folded[u] = pack<fold_sum>(sums[u], work.divisor);
    return true;
}

#endif
