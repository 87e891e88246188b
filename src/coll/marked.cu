/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums by marked words, as coll/marked.h has them.
 *
 * A thread sends all of its units before it takes any. All members cut a call alike, and send the
 * empty units at the end of it, too: so everybody hears of everybody on each channel. What a thread
 * writes to `dest` it has read from the same place of the source, if that is where `dest` is. */
#include "coll/marked.h"
#include "coll/marked.cuh"
#include "coll/fold.cuh"

#define WEFT_KERNEL_THREADS

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

WEFT_DEVICE struct marked_place place_of(const struct marked_blocks &blocks, int member,
                                         uint32_t unit) {
    size_t offset = (size_t)unit * 16;
    return {blocks.first + (size_t)member * blocks.step + offset,
            blocks.bytes - member * blocks.less - (ptrdiff_t)offset};
}

WEFT_DEVICE bool is_whole(struct marked_place place) {
    return place.left >= 16 && (uintptr_t)place.at % 16 == 0;
}

/* The unit at a place, of numbers T; zeros behind the end. */
template <class T> WEFT_DEVICE struct weft_quad load(struct marked_place place) {
    struct weft_quad unit;
    if (is_whole(place)) {
        number_vector whole = *(const number_vector *)place.at;
        memcpy(&unit, &whole, sizeof unit);
        return unit;
    }
    T numbers[16 / sizeof(T)];
    WEFT_UNROLL
    for (size_t k = 0; k < 16 / sizeof(T); k++)
        numbers[k] = (ptrdiff_t)(k * sizeof(T)) < place.left ? ((const T *)place.at)[k] : T();
    memcpy(&unit, numbers, sizeof unit);
    return unit;
}

template <class T> WEFT_DEVICE void store(struct marked_place place, struct weft_quad unit) {
    if (is_whole(place)) {
        number_vector whole;
        memcpy(&whole, &unit, sizeof unit);
        *(number_vector *)place.at = whole;
        return;
    }
    T numbers[16 / sizeof(T)];
    memcpy(numbers, &unit, sizeof unit);
    WEFT_UNROLL
    for (size_t k = 0; k < 16 / sizeof(T); k++)
        if ((ptrdiff_t)(k * sizeof(T)) < place.left)
            ((T *)place.at)[k] = numbers[k];
}

/* --- One call -------------------------------------------------------------------------------- */

/* Members whose units are asked for together: in small teams, and else. */
enum { FEW = 4, MANY = 8 };

/* What a block of a kernel works on. */
struct marked_work {
    const struct weft_gpu_channels &channels;
    struct weft_gpu_abort abort;
    struct marked_blocks from;
    uint32_t slot;       /* by the epoch's parity */
    uint32_t first, end; /* units */
    int divisor;
};

WEFT_DEVICE int member_after(const struct weft_gpu_channels &channels, int distance) {
    int member = channels.me + distance;
    return member < channels.n ? member : member - channels.n;
}

/* To the member at a distance, as the block's unit number `at`. */
WEFT_DEVICE void send(const struct weft_gpu_channels &channels, int distance, uint32_t slot,
                      uint32_t at, struct weft_quad unit) {
    struct weft_quad *to = weft_marked_at(channels, member_after(channels, distance),
                                          weft_block_index(), slot, channels.me);
    weft_st_relaxed_sys(to + at, unit);
}

WEFT_DEVICE void send_to_all(const struct weft_gpu_channels &channels, uint32_t slot, uint32_t at,
                             struct weft_quad unit) {
    ROLLED
    for (int distance = 1; distance < channels.n; distance++)
        send(channels, distance, slot, at, unit);
}

/* To each member its own, of which a few are loaded together. */
template <class T> WEFT_DEVICE void send_to_each(const struct marked_work &work, uint32_t unit) {
    enum { AHEAD = 4 };
    const struct weft_gpu_channels &channels = work.channels;
    ROLLED
    for (int distance = 1; distance < channels.n; distance += AHEAD) {
        struct weft_quad units[AHEAD];
        WEFT_UNROLL
        for (int k = 0; k < AHEAD; k++)
            if (distance + k < channels.n)
                units[k] = load<T>(place_of(work.from, member_after(channels, distance + k), unit));
        WEFT_UNROLL
        for (int k = 0; k < AHEAD; k++)
            if (distance + k < channels.n)
                send(channels, distance + k, work.slot, unit - work.first, weft_unmark(units[k]));
    }
}

template <class T> WEFT_DEVICE void send_units(const struct marked_work &work) {
    uint32_t unit = work.first + weft_block_thread();
    ROLLED
    for (; unit < work.end; unit += weft_block_threads())
        if (work.from.step == 0)
            send_to_all(work.channels, work.slot, unit - work.first,
                        weft_unmark(load<T>(place_of(work.from, 0, unit))));
        else
            send_to_each<T>(work, unit);
}

/* Sums of a unit, by all its numbers. */
template <class T> using sums = weft_unpacked<T, struct weft_quad>;

/* Adds a unit of all members, in their order. */
template <class T, int BATCH>
WEFT_DEVICE bool add_members(sums<T> *so_far, const struct marked_work &work, struct weft_quad own,
                             uint32_t at) {
    const struct weft_gpu_channels &channels = work.channels;
    ROLLED
    for (int first = 0; first < channels.n; first += BATCH) {
        struct weft_quad units[BATCH];
        if (!weft_marked_take(units, channels, work.slot, first, at, work.abort))
            return false;
        WEFT_UNROLL
        for (int k = 0; k < BATCH; k++)
            if (first + k < channels.n)
                fold_word<fold_sum>(so_far, first + k == channels.me ? own : units[k]);
    }
    return true;
}

/* -0 leaves all bits of what it is added to. */
template <class T>
WEFT_DEVICE bool fold_unit(struct weft_quad *folded, const struct marked_work &work,
                           uint32_t unit) {
    struct weft_quad own = weft_unmark(load<T>(place_of(work.from, work.channels.me, unit)));
    sums<T> so_far;
    WEFT_UNROLL
    for (int k = 0; k < so_far.N; k++)
        so_far.of[k] = -0.0f;
    uint32_t at = unit - work.first;
    if (!(work.channels.n <= FEW ? add_members<T, FEW>(&so_far, work, own, at)
                                 : add_members<T, MANY>(&so_far, work, own, at)))
        return false;
    *folded = pack<fold_sum>(so_far, work.divisor);
    return true;
}

/* One of several that are in registers. */
template <int BATCH>
WEFT_DEVICE struct weft_quad unit_of(const struct weft_quad (&units)[BATCH], int wanted) {
    struct weft_quad unit = units[0];
    WEFT_UNROLL
    for (int k = 1; k < BATCH; k++)
        if (k == wanted)
            unit = units[k];
    return unit;
}

/* The chunks that the others have folded. */
template <class T, int BATCH>
WEFT_DEVICE bool take_answers(const struct marked_work &work, const struct marked_blocks &to,
                              uint32_t unit) {
    const struct weft_gpu_channels &channels = work.channels;
    ROLLED
    for (int first = 0; first < channels.n; first += BATCH) {
        struct weft_quad units[BATCH];
        if (!weft_marked_take(units, channels, WEFT_MARKED_ANSWER, first, unit - work.first,
                              work.abort))
            return false;
        ROLLED
        for (int k = 0; k < BATCH; k++)
            if (first + k < channels.n && first + k != channels.me)
                store<T>(place_of(to, first + k, unit), unit_of(units, k));
    }
    return true;
}

/* What is folded goes to the own block of `to`, and from there to all others' if it has several. */
template <class T>
WEFT_DEVICE bool reduce(const struct marked_work &work, const struct marked_blocks &to) {
    const struct weft_gpu_channels &channels = work.channels;
    uint32_t first = work.first + weft_block_thread(), step = weft_block_threads();
    ROLLED
    for (uint32_t unit = first; unit < work.end; unit += step) {
        struct weft_quad folded;
        if (!fold_unit<T>(&folded, work, unit))
            return false;
        if (to.step) {
            folded = weft_unmark(folded);
            send_to_all(channels, WEFT_MARKED_ANSWER, unit - work.first, folded);
        }
        store<T>(place_of(to, channels.me, unit), folded);
    }
    ROLLED
    for (uint32_t unit = first; to.step && unit < work.end; unit += step)
        if (!(channels.n <= FEW ? take_answers<T, FEW>(work, to, unit)
                                : take_answers<T, MANY>(work, to, unit)))
            return false;
    return true;
}

template <class T>
WEFT_DEVICE void run(struct weft_gpu_abort abort, const struct weft_gpu_channels &channels,
                     const struct weft_gpu_collective &task, struct weft_marked_cut cut,
                     const struct marked_blocks &from, const struct marked_blocks &to) {
    uint32_t channel = weft_block_index(), first = channel * cut.part, left = cut.chunk - first;
    uint64_t *word = &weft_gpu_channel_head(&channels, channels.me, channel)->epoch;
    uint64_t epoch = weft_channel_epoch_begin(word);
    struct marked_work work = {channels,    abort,
                               from,        (uint32_t)(epoch & 1),
                               first,       first + (left < cut.part ? left : cut.part),
                               task.divisor};
    send_units<T>(work);
    if (!reduce<T>(work, to))
        return;
    weft_channel_epoch_end(word, epoch);
}

/* --- Kernels --------------------------------------------------------------------------------- */

/* One shot: what a member needs is in its block, and the result has one. */
template <class T>
WEFT_DEVICE void reduce_blocks(struct weft_gpu_abort abort,
                               const struct weft_gpu_channels &channels,
                               const struct weft_gpu_collective &task, struct weft_marked_cut cut) {
    ptrdiff_t bytes = (ptrdiff_t)task.bytes;
    struct marked_blocks from = {(char *)task.source, task.source_step, bytes, 0};
    struct marked_blocks to = {task.dest, 0, bytes, 0};
    run<T>(abort, channels, task, cut, from, to);
}

/* Two shots: blocks are the chunks of one array. */
template <class T>
WEFT_DEVICE void reduce_chunks(struct weft_gpu_abort abort,
                               const struct weft_gpu_channels &channels,
                               const struct weft_gpu_collective &task, struct weft_marked_cut cut) {
    ptrdiff_t bytes = (ptrdiff_t)task.bytes, chunk = (ptrdiff_t)cut.chunk * 16;
    struct marked_blocks from = {(char *)task.source, (size_t)chunk, bytes, chunk};
    struct marked_blocks to = {task.dest, (size_t)chunk, bytes, chunk};
    run<T>(abort, channels, task, cut, from, to);
}

extern "C" __global__ void __launch_bounds__(WEFT_GPU_CHANNEL_THREADS)
    weftk_marked_reduce_f32(struct weft_gpu_abort abort, struct weft_gpu_channels channels,
                            struct weft_gpu_collective task, struct weft_marked_cut cut) {
    reduce_blocks<float>(abort, channels, task, cut);
}

extern "C" __global__ void __launch_bounds__(WEFT_GPU_CHANNEL_THREADS)
    weftk_marked_reduce_bf16(struct weft_gpu_abort abort, struct weft_gpu_channels channels,
                             struct weft_gpu_collective task, struct weft_marked_cut cut) {
    reduce_blocks<weft_bf16>(abort, channels, task, cut);
}

extern "C" __global__ void __launch_bounds__(WEFT_GPU_CHANNEL_THREADS)
    weftk_marked_reduce_f16(struct weft_gpu_abort abort, struct weft_gpu_channels channels,
                            struct weft_gpu_collective task, struct weft_marked_cut cut) {
    reduce_blocks<weft_f16>(abort, channels, task, cut);
}

extern "C" __global__ void __launch_bounds__(WEFT_GPU_CHANNEL_THREADS)
    weftk_marked_all_reduce_f32(struct weft_gpu_abort abort, struct weft_gpu_channels channels,
                                struct weft_gpu_collective task, struct weft_marked_cut cut) {
    reduce_chunks<float>(abort, channels, task, cut);
}

extern "C" __global__ void __launch_bounds__(WEFT_GPU_CHANNEL_THREADS)
    weftk_marked_all_reduce_bf16(struct weft_gpu_abort abort, struct weft_gpu_channels channels,
                                 struct weft_gpu_collective task, struct weft_marked_cut cut) {
    reduce_chunks<weft_bf16>(abort, channels, task, cut);
}

extern "C" __global__ void __launch_bounds__(WEFT_GPU_CHANNEL_THREADS)
    weftk_marked_all_reduce_f16(struct weft_gpu_abort abort, struct weft_gpu_channels channels,
                                struct weft_gpu_collective task, struct weft_marked_cut cut) {
    reduce_chunks<weft_f16>(abort, channels, task, cut);
}
