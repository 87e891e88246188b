/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums by marked words, as coll/marked.h has them.
 *
 * A thread works in rounds of several units, which are under way together, and sends those of all
 * its rounds before it takes any. All members cut a call alike, and send the empty units at the end
 * of it, too: so everybody hears of everybody on each channel. What a thread writes to `dest` it
 * has read from the same place of the source, if that is where `dest` is. */
#include "coll/marked.h"
#include "coll/marked.cuh"
#include "coll/fold.cuh"

#define WEFT_KERNEL_THREADS

/* --- Units of arrays ------------------------------------------------------------------------- */

/* The blocks of an array, for each member one: that for member m lies m * step behind the first,
 * and has m * less bytes less. */
struct marked_blocks {
    char *first;
    size_t step;
    ptrdiff_t bytes, less;
};

/* A place in an array, and how many bytes of it are left there: none where that is below 1. */
struct marked_place {
    char *at;
    ptrdiff_t left;
};

WEFT_DEVICE bool is_whole(struct marked_place place) {
    return place.left >= 16 && (uintptr_t)place.at % 16 == 0;
}

WEFT_DEVICE struct weft_quad load_whole(struct marked_place place) {
    struct weft_quad unit;
    number_vector whole = *(const number_vector *)place.at;
    memcpy(&unit, &whole, sizeof unit);
    return unit;
}

WEFT_DEVICE void store_whole(struct marked_place place, struct weft_quad unit) {
    number_vector whole;
    memcpy(&whole, &unit, sizeof whole);
    *(number_vector *)place.at = whole;
}

/* By numbers of so many bytes; zeros behind the end. */
template <int BYTES> WEFT_DEVICE struct weft_quad load_partial(struct marked_place place) {
    uint32_t words[4] = {0, 0, 0, 0};
    WEFT_UNROLL
    for (int at = 0; at < 16; at += BYTES)
        if (at < place.left)
            words[at / 4] |= (BYTES == 4 ? *(const uint32_t *)(place.at + at)
                                         : *(const uint16_t *)(place.at + at))
                             << at % 4 * 8;
    return {words[0], words[1], words[2], words[3]};
}

template <int BYTES>
WEFT_DEVICE void store_partial(struct marked_place place, struct weft_quad unit) {
    const uint32_t words[4] = {unit.a, unit.b, unit.c, unit.d};
    WEFT_UNROLL
    for (int at = 0; at < 16; at += BYTES)
        if (at < place.left && BYTES == 4)
            *(uint32_t *)(place.at + at) = words[at / 4];
        else if (at < place.left)
            *(uint16_t *)(place.at + at) = (uint16_t)(words[at / 4] >> at % 4 * 8);
}

/* Units i of the set from place_of(i): the whole ones together, and then those by numbers T. */
template <class T, int N, class Places>
WEFT_DEVICE void load(struct weft_quad (&units)[N], uint32_t set, Places place_of) {
    uint32_t partial = 0;
    WEFT_UNROLL
    for (int k = 0; k < N; k++)
        if ((set >> k & 1) && is_whole(place_of(k)))
            units[k] = load_whole(place_of(k));
        else
            partial |= set & 1u << k;
    ROLLED
    for (int i = 0; partial >> i; i++)
        if (partial >> i & 1) {
            struct weft_quad unit = load_partial<sizeof(T)>(place_of(i));
            WEFT_UNROLL
            for (int k = 0; k < N; k++)
                if (k == i)
                    units[k] = unit;
        }
}

template <class T, int N, class Places>
WEFT_DEVICE void store(const struct weft_quad (&units)[N], uint32_t set, Places place_of) {
    uint32_t partial = 0;
    WEFT_UNROLL
    for (int k = 0; k < N; k++)
        if ((set >> k & 1) && is_whole(place_of(k)))
            store_whole(place_of(k), units[k]);
        else
            partial |= set & 1u << k;
    ROLLED
    for (int i = 0; partial >> i; i++)
        if (partial >> i & 1) {
            struct weft_quad unit = units[0];
            WEFT_UNROLL
            for (int k = 1; k < N; k++)
                if (k == i)
                    unit = units[k];
            store_partial<sizeof(T)>(place_of(i), unit);
        }
}

/* --- Rounds ---------------------------------------------------------------------------------- */

/* What a block of a kernel works on: units of all blocks of arrays, from number `first` on. */
struct marked_work {
    const struct weft_gpu_channels &channels;
    struct weft_gpu_abort abort;
    struct marked_blocks from, to;
    uint32_t slot; /* by the epoch's parity */
    uint32_t first, count;
    int divisor;
};

WEFT_DEVICE struct marked_place place_in(const struct marked_work &work,
                                         const struct marked_blocks &blocks, int member,
                                         const struct weft_marked_round &round, int u) {
    size_t offset = (size_t)(work.first + round.at + (uint32_t)u * round.step) * 16;
    return {blocks.first + (size_t)member * blocks.step + offset,
            blocks.bytes - member * blocks.less - (ptrdiff_t)offset};
}

WEFT_DEVICE int member_after(const struct weft_gpu_channels &channels, int distance) {
    int member = channels.me + distance;
    return member < channels.n ? member : member - channels.n;
}

/* Where this member's units of a round go, to the member at a distance. */
WEFT_DEVICE struct weft_quad *place_at(const struct marked_work &work, int distance, uint32_t slot,
                                       const struct weft_marked_round &round) {
    int member = member_after(work.channels, distance);
    return weft_marked_at(work.channels, member, weft_block_index(), slot, work.channels.me) +
           round.at;
}

template <int UNITS>
WEFT_DEVICE void send_to_all(const struct marked_work &work, uint32_t slot,
                             const struct weft_marked_round &round,
                             const struct weft_quad (&units)[UNITS]) {
    ROLLED
    for (int distance = 1; distance < work.channels.n; distance++) {
        struct weft_quad *to = place_at(work, distance, slot, round);
        WEFT_UNROLL
        for (int u = 0; u < UNITS; u++)
            if (round.set >> u & 1)
                weft_st_relaxed_sys(to + (uint32_t)u * round.step, units[u]);
    }
}

/* To each member its own, those of some members together. */
template <class T, int UNITS, int OTHERS>
WEFT_DEVICE void send_to_each(const struct marked_work &work,
                              const struct weft_marked_round &round) {
    const struct weft_gpu_channels &channels = work.channels;
    ROLLED
    for (int distance = 1; distance < channels.n; distance += OTHERS) {
        struct weft_quad units[UNITS * OTHERS];
        uint32_t set = 0;
        WEFT_UNROLL
        for (int k = 0; k < UNITS * OTHERS; k++)
            set |= (distance + k % OTHERS < channels.n ? round.set >> k / OTHERS & 1 : 0) << k;
        load<T>(units, set, [&](int k) {
            return place_in(work, work.from, member_after(channels, distance + k % OTHERS), round,
                            k / OTHERS);
        });
        WEFT_UNROLL
        for (int k = 0; k < UNITS * OTHERS; k++)
            if (set >> k & 1)
                weft_st_relaxed_sys(place_at(work, distance + k % OTHERS, work.slot, round) +
                                        (uint32_t)(k / OTHERS) * round.step,
                                    weft_unmark(units[k]));
    }
}

/* This member's own block, or the one for all. */
template <class T, int UNITS>
WEFT_DEVICE void load_own(struct weft_quad (&units)[UNITS], const struct marked_work &work,
                          const struct weft_marked_round &round) {
    load<T>(units, round.set,
            [&](int u) { return place_in(work, work.from, work.channels.me, round, u); });
    WEFT_UNROLL
    for (int u = 0; u < UNITS; u++)
        units[u] = weft_unmark(units[u]);
}

template <class T, int UNITS, int MEMBERS>
WEFT_DEVICE void send_round(const struct marked_work &work, const struct weft_marked_round &round) {
    if (work.from.step != 0)
        return send_to_each<T, UNITS, MEMBERS - 1>(work, round);
    struct weft_quad own[UNITS];
    load_own<T>(own, work, round);
    send_to_all(work, work.slot, round, own);
}

/* This member's units of a round, as those of the pairs that weft_marked_take leaves out. */
template <class T, int UNITS, int MEMBERS>
WEFT_DEVICE void join_own(struct weft_quad (&units)[UNITS * MEMBERS],
                          const struct marked_work &work, int first,
                          const struct weft_marked_round &round) {
    uint32_t set = 0;
    WEFT_UNROLL
    for (int k = 0; k < UNITS * MEMBERS; k++)
        set |= (first + k % MEMBERS == work.channels.me ? round.set >> k / MEMBERS & 1 : 0) << k;
    load<T>(units, set,
            [&](int k) { return place_in(work, work.from, work.channels.me, round, k / MEMBERS); });
}

/* Of all members, in their order. -0 leaves all bits of what is added to it. */
template <class T, int UNITS, int MEMBERS>
WEFT_DEVICE bool fold_round(struct weft_quad (&folded)[UNITS], const struct marked_work &work,
                            const struct weft_marked_round &round) {
    const struct weft_gpu_channels &channels = work.channels;
    weft_unpacked<T, struct weft_quad> sums[UNITS];
    WEFT_UNROLL
    for (int k = 0; k < UNITS * sums->N; k++)
        sums[k / sums->N].of[k % sums->N] = -0.0f;
    ROLLED
    for (int first = 0; first < channels.n; first += MEMBERS) {
        struct weft_quad units[UNITS * MEMBERS];
        join_own<T, UNITS, MEMBERS>(units, work, first, round);
        if (!weft_marked_take<UNITS, MEMBERS>(units, channels, work.slot, first, round, work.abort))
            return false;
        WEFT_UNROLL
        for (int k = 0; k < UNITS * MEMBERS; k++)
            if (first + k % MEMBERS < channels.n)
                fold_word<fold_sum>(&sums[k / MEMBERS], weft_unmark(units[k]));
    }
    WEFT_UNROLL
    for (int u = 0; u < UNITS; u++)
        folded[u] = pack<fold_sum>(sums[u], work.divisor);
    return true;
}

/* What is folded goes to the own block of `to`, and from there to all others' if it has several. */
template <class T, int UNITS, int MEMBERS>
WEFT_DEVICE bool reduce_round(const struct marked_work &work,
                              const struct weft_marked_round &round) {
    struct weft_quad folded[UNITS];
    if (!fold_round<T, UNITS, MEMBERS>(folded, work, round))
        return false;
    if (work.to.step) {
        WEFT_UNROLL
        for (int u = 0; u < UNITS; u++)
            folded[u] = weft_unmark(folded[u]);
        send_to_all(work, WEFT_MARKED_ANSWER, round, folded);
    }
    store<T>(folded, round.set,
             [&](int u) { return place_in(work, work.to, work.channels.me, round, u); });
    return true;
}

/* The chunks that the others have folded. */
template <class T, int UNITS, int MEMBERS>
WEFT_DEVICE bool take_answers(const struct marked_work &work,
                              const struct weft_marked_round &round) {
    const struct weft_gpu_channels &channels = work.channels;
    ROLLED
    for (int first = 0; first < channels.n; first += MEMBERS) {
        struct weft_quad units[UNITS * MEMBERS];
        if (!weft_marked_take<UNITS, MEMBERS>(units, channels, WEFT_MARKED_ANSWER, first, round,
                                              work.abort))
            return false;
        store<T>(units, weft_marked_set<UNITS, MEMBERS>(channels, first, round.set), [&](int k) {
            return place_in(work, work.to, first + k % MEMBERS, round, k / MEMBERS);
        });
    }
    return true;
}

/* Every thread's rounds. False when the job is over. */
template <class T, int UNITS, int MEMBERS> WEFT_DEVICE bool reduce(const struct marked_work &work) {
    uint32_t first = weft_block_thread(), step = UNITS * weft_block_threads();
    ROLLED
    for (uint32_t at = first; at < work.count; at += step)
        send_round<T, UNITS, MEMBERS>(work, weft_marked_round_at<UNITS>(at, work.count));
    ROLLED
    for (uint32_t at = first; at < work.count; at += step)
        if (!reduce_round<T, UNITS, MEMBERS>(work, weft_marked_round_at<UNITS>(at, work.count)))
            return false;
    ROLLED
    for (uint32_t at = first; work.to.step && at < work.count; at += step)
        if (!take_answers<T, UNITS, MEMBERS>(work, weft_marked_round_at<UNITS>(at, work.count)))
            return false;
    return true;
}

/* --- Kernels --------------------------------------------------------------------------------- */

template <class T, int UNITS, int MEMBERS>
WEFT_DEVICE void run(struct weft_gpu_abort abort, const struct weft_gpu_channels &channels,
                     const struct weft_gpu_collective &task, struct weft_marked_cut cut,
                     const struct marked_blocks &from, const struct marked_blocks &to) {
    uint32_t channel = weft_block_index(), first = channel * cut.part, left = cut.chunk - first;
    uint64_t *word = &weft_gpu_channel_head(&channels, channels.me, channel)->epoch;
    uint64_t epoch = weft_channel_epoch_begin(word);
    struct marked_work work = {channels,
                               abort,
                               from,
                               to,
                               (uint32_t)(epoch & 1),
                               first,
                               left < cut.part ? left : cut.part,
                               task.divisor};
    if (reduce<T, UNITS, MEMBERS>(work))
        weft_channel_epoch_end(word, epoch);
}

/* One shot: what a member needs is in its block, and the result has one. */
template <class T, int UNITS, int MEMBERS>
WEFT_DEVICE void reduce_once(struct weft_gpu_abort abort, const struct weft_gpu_channels &channels,
                             const struct weft_gpu_collective &task, struct weft_marked_cut cut) {
    ptrdiff_t bytes = (ptrdiff_t)task.bytes;
    struct marked_blocks from = {(char *)task.source, task.source_step, bytes, 0};
    struct marked_blocks to = {task.dest, 0, bytes, 0};
    run<T, UNITS, MEMBERS>(abort, channels, task, cut, from, to);
}

/* Two shots: blocks are the chunks of one array. */
template <class T, int UNITS, int MEMBERS>
WEFT_DEVICE void reduce_twice(struct weft_gpu_abort abort, const struct weft_gpu_channels &channels,
                              const struct weft_gpu_collective &task, struct weft_marked_cut cut) {
    ptrdiff_t bytes = (ptrdiff_t)task.bytes, chunk = (ptrdiff_t)cut.chunk * 16;
    struct marked_blocks from = {(char *)task.source, (size_t)chunk, bytes, chunk};
    struct marked_blocks to = {task.dest, (size_t)chunk, bytes, chunk};
    run<T, UNITS, MEMBERS>(abort, channels, task, cut, from, to);
}

/* clang-format off */
#define MARKED_KERNEL(what, number, reduce, T, units, members)                              \
    extern "C" __global__ void __launch_bounds__(WEFT_GPU_CHANNEL_THREADS)                  \
        weftk_marked_##what##_##number##_##members(                                         \
            struct weft_gpu_abort abort, struct weft_gpu_channels channels,                 \
            struct weft_gpu_collective task, struct weft_marked_cut cut) {                  \
        reduce<T, units, members>(abort, channels, task, cut);                              \
    }
#define MARKED_KERNELS(what, number, reduce, T)      \
    MARKED_KERNEL(what, number, reduce, T, 4, 2)     \
    MARKED_KERNEL(what, number, reduce, T, 2, 4)     \
    MARKED_KERNEL(what, number, reduce, T, 1, 8)
MARKED_KERNELS(reduce, f32, reduce_once, float)
MARKED_KERNELS(reduce, bf16, reduce_once, weft_bf16)
MARKED_KERNELS(reduce, f16, reduce_once, weft_f16)
MARKED_KERNELS(all_reduce, f32, reduce_twice, float)
MARKED_KERNELS(all_reduce, bf16, reduce_twice, weft_bf16)
MARKED_KERNELS(all_reduce, f16, reduce_twice, weft_f16)
/* clang-format on */
