/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums with marked words (coll/marked.h).
 *
 * A thread works in rounds of several units, which are in flight together, and sends the units of
 * all its rounds before it receives any. If a thread has one unit, a kernel for one has less to do:
 * an all-reduce of 256 KiB took 4.3 us on two H200s, and 4.9 us with the kernel for four. All
 * members split a call in the same way, and also send the empty units at its end, so every member
 * receives something from every member on each channel. If `dest` is the source, a thread reads
 * each place before it writes there. */
#include "coll/marked_fold.cuh"

#define WEFT_KERNEL_THREADS

/* --- Storing -------------------------------------------------------------------------------- */

WEFT_DEVICE void store_whole(char *at, struct weft_quad unit) {
    number_vector whole;
    memcpy(&whole, &unit, sizeof whole);
    *(number_vector *)at = whole;
}

template <int BYTES>
WEFT_DEVICE void store_partial(char *to, ptrdiff_t left, struct weft_quad unit) {
    const uint32_t words[4] = {unit.a, unit.b, unit.c, unit.d};
    WEFT_UNROLL
    for (int at = 0; at < 16; at += BYTES)
        if (at < left && BYTES == 4)
            *(uint32_t *)(to + at) = words[at / 4];
        else if (at < left)
            *(uint16_t *)(to + at) = (uint16_t)(words[at / 4] >> at % 4 * 8);
}

/* The inverse of load. */
template <class T, int UNITS, int OTHERS, class Member>
WEFT_DEVICE void store(const struct weft_quad (&quads)[UNITS * OTHERS],
                       const struct weft_marked_array &array, uint32_t begin,
                       const struct weft_marked_round &round, uint32_t members, Member member_of) {
    uint32_t partial = weft_marked_pairs<UNITS, OTHERS>(round.set, members);
    WEFT_UNROLL
    for (int m = 0; m < OTHERS; m++) {
        struct marked_units units = units_in<UNITS>(array, member_of(m), begin, round);
        WEFT_UNROLL
        for (int u = 0; u < UNITS; u++)
            if (members >> m & units.whole >> u & 1) {
                store_whole(units.first + (size_t)u * units.step, quads[u * OTHERS + m]);
                partial &= ~(1u << (u * OTHERS + m));
            }
    }
    WEFT_ROLLED
    for (int i = 0; partial >> i; i++)
        if (partial >> i & 1) {
            struct marked_units units = units_in<1>(array, member_of(i % OTHERS), begin, round);
            ptrdiff_t offset = (ptrdiff_t)(i / OTHERS) * units.step;
            struct weft_quad quad = quads[0];
            WEFT_UNROLL
            for (int k = 1; k < UNITS * OTHERS; k++)
                if (k == i)
                    quad = quads[k];
            store_partial<sizeof(T)>(units.first + offset, units.left - offset, quad);
        }
}

/* --- Rounds ---------------------------------------------------------------------------------- */

/* Sends each member its own block, to several members at a time. */
template <class T, int UNITS, int OTHERS>
WEFT_DEVICE void send_to_each(const struct marked_call &call,
                              const struct weft_marked_round &round) {
    const struct weft_marked_work &work = call.work;
    WEFT_ROLLED
    for (int distance = 1; distance <= others_end<OTHERS>(work); distance += OTHERS) {
        struct weft_quad quads[UNITS * OTHERS] = {};
        uint32_t members = weft_marked_others<OTHERS>(work, distance - 1);
        load<T, UNITS, OTHERS>(quads, work.from, call.begin, round, members, [&](int m) {
            return weft_gpu_member_after(work.me, work.n, distance + m);
        });
        WEFT_UNROLL
        for (int m = 0; m < OTHERS; m++) {
            int member = weft_gpu_member_after(work.me, work.n, distance + m);
            struct weft_quad *to = weft_marked_place(work, member, call.slot, round.at);
            WEFT_UNROLL
            for (int u = 0; u < UNITS; u++)
                if (members >> m & round.set >> u & 1)
                    weft_st_relaxed_sys(to + (uint32_t)u * round.step,
                                        weft_unmark(quads[u * OTHERS + m]));
        }
    }
}

template <class T, int UNITS, int OTHERS>
WEFT_DEVICE void send_round(const struct marked_call &call, const struct weft_marked_round &round) {
    if (call.work.from.step != 0)
        return send_to_each<T, UNITS, OTHERS>(call, round);
    struct weft_quad own[UNITS];
    load_own<T, UNITS>(own, call, round);
    send_to_all(call, call.slot, round, own);
}

/* Stores the folded units in this member's block of `to`, and sends them to all others if `to` has
 * several blocks. */
template <class T, int UNITS, int OTHERS>
WEFT_DEVICE bool reduce_round(const struct marked_call &call,
                              const struct weft_marked_round &round) {
    struct weft_quad folded[UNITS];
    if (!fold_round<T, UNITS, OTHERS>(folded, call, round))
        return false;
    if (call.work.to.step) {
        WEFT_UNROLL
        for (int u = 0; u < UNITS; u++)
            folded[u] = weft_unmark(folded[u]);
        send_to_all(call, WEFT_MARKED_ANSWER, round, folded);
    }
    store<T, UNITS, 1>(folded, call.work.to, call.begin, round, 1,
                       [&](int) { return call.work.me; });
    return true;
}

/* Receives the chunks that the other members have folded. */
template <class T, int UNITS, int OTHERS>
WEFT_DEVICE bool take_answers(const struct marked_call &call,
                              const struct weft_marked_round &round) {
    const struct weft_marked_work &work = call.work;
    struct weft_quad quads[UNITS * OTHERS];
    WEFT_ROLLED
    for (int first = 0; first < others_end<OTHERS>(work); first += OTHERS) {
        if (!weft_marked_take<UNITS, OTHERS>(quads, work, WEFT_MARKED_ANSWER, first, round,
                                             call.abort))
            return false;
        store<T, UNITS, OTHERS>(quads, work.to, call.begin, round,
                                weft_marked_others<OTHERS>(work, first),
                                [&](int m) { return weft_marked_other(work, first + m); });
    }
    return true;
}

/* Runs all rounds of a thread. Returns false when the job is over. */
template <class T, int UNITS, int OTHERS> WEFT_DEVICE bool reduce(const struct marked_call &call) {
    uint32_t first = weft_block_thread(), step = UNITS * weft_block_threads();
    WEFT_ROLLED
    for (uint32_t at = first; at < call.count; at += step)
        send_round<T, UNITS, OTHERS>(call, weft_marked_round_at<UNITS>(at, call.count));
    WEFT_ROLLED
    for (uint32_t at = first; at < call.count; at += step)
        if (!reduce_round<T, UNITS, OTHERS>(call, weft_marked_round_at<UNITS>(at, call.count)))
            return false;
    WEFT_ROLLED
    for (uint32_t at = first; call.work.to.step && at < call.count; at += step)
        if (!take_answers<T, UNITS, OTHERS>(call, weft_marked_round_at<UNITS>(at, call.count)))
            return false;
    return true;
}

template <class T, int UNITS, int OTHERS>
WEFT_DEVICE void run(struct weft_gpu_abort abort, const struct weft_marked_work &work) {
    uint32_t channel = weft_block_index(), begin = channel * work.part, left = work.chunk - begin;
    uint64_t *word = (uint64_t *)(work.epochs + channel * work.epoch_step);
    uint64_t epoch = weft_channel_epoch_begin(word);
    struct marked_call call = {work, abort, (uint32_t)(epoch & 1), begin,
                               left < work.part ? left : work.part};
    if (reduce<T, UNITS, OTHERS>(call))
        weft_channel_epoch_end(word, epoch);
}

/* --- Kernels --------------------------------------------------------------------------------- */

/* clang-format off */
#define MARKED_KERNEL(number, T, members, units)                                             \
    extern "C" __global__ void __launch_bounds__(WEFT_GPU_CHANNEL_THREADS, 1)                \
        weftk_marked_##number##_##members##x##units(struct weft_gpu_abort abort,             \
                                                    struct weft_marked_work work) {          \
        weft_dependency_wait();                                                              \
        run<T, units, members - 1>(abort, work);                                             \
    }
#define MARKED_KERNELS(number, T)      \
    MARKED_KERNEL(number, T, 2, 1)     \
    MARKED_KERNEL(number, T, 2, 4)     \
    MARKED_KERNEL(number, T, 4, 1)     \
    MARKED_KERNEL(number, T, 4, 2)     \
    MARKED_KERNEL(number, T, 8, 1)
MARKED_KERNELS(f32, float)
MARKED_KERNELS(bf16, weft_bf16)
MARKED_KERNELS(f16, weft_f16)
/* clang-format on */
