/* SPDX-License-Identifier: BSD-3-Clause */
/* Reductions of many arrays into one by a kernel, as coll/fold.h has them: sources in their order.
 *
 * A thread loads its elements of several sources before it folds them; 16 bytes at once where all
 * arrays begin alike within 16 bytes. An element is read from all sources, and then written to all
 * destinations, by the same thread: so a destination may be a source.
 *
 * Members meet in the kernel, by the words of their channels, before and behind it. A file for each
 * operation makes its kernels by WEFT_FOLD_KERNEL. */
#ifndef WEFT_COLL_FOLD_KERNEL_CUH
#define WEFT_COLL_FOLD_KERNEL_CUH

#include "transport/gpu_channel.cuh"
#include "coll/fold.cuh"

/* Not unrolled: no loop is short of work. */
#ifdef __CUDACC__
#define ROLLED _Pragma("unroll 1")
#else
#define ROLLED
#endif

/* --- The loop -------------------------------------------------------------------------------- */

/* The word `at` bytes into all arrays. The first source is loaded with those behind it. */
template <class Operation, class T, class Word>
WEFT_DEVICE void fold_at(const struct weft_fold_task &task, size_t at) {
    enum { AHEAD = 4 };
    weft_unpacked<T, Word> so_far;
    ROLLED
    for (int s = 0; s < task.nsources; s += AHEAD) {
        Word next[AHEAD];
        WEFT_UNROLL
        for (int k = 0; k < AHEAD; k++)
            if (s + k < task.nsources)
                next[k] = *(const Word *)(weft_array_of(&task.sources, s + k) + at);
        WEFT_UNROLL
        for (int k = 0; k < AHEAD; k++)
            if (s + k == 0)
                so_far = unpack<T>(next[0]);
            else if (s + k < task.nsources)
                fold_word<Operation>(&so_far, next[k]);
    }
    Word folded = pack<Operation>(so_far, task.divisor);
    ROLLED
    for (int d = 0; d < task.ndests; d++)
        *(Word *)(weft_array_of(&task.dests, d) + at) = folded;
}

/* Vectors, and element by element what is before the first and behind the last: all, where arrays
 * do not begin alike. */
template <class Operation, class T> WEFT_DEVICE void fold(const struct weft_fold_task &task) {
    uintptr_t begin = (uintptr_t)task.sources.first, unlike = begin ^ (uintptr_t)task.dests.first;
    unlike |= (uintptr_t)task.sources.step | (uintptr_t)task.dests.step;
    size_t before = (16 - begin % 16) % 16 / sizeof(T);
    if (unlike % 16 != 0 || begin % sizeof(T) != 0 || before > task.nelems)
        before = task.nelems;
    size_t in_vector = 16 / sizeof(T), vectors = (task.nelems - before) / in_vector;
    size_t single = task.nelems - vectors * in_vector;
    ROLLED
    for (size_t i = weft_thread_index(); i < vectors; i += weft_thread_count())
        fold_at<Operation, T, number_vector>(task, (before + i * in_vector) * sizeof(T));
    ROLLED
    for (size_t i = weft_thread_index(); i < single; i += weft_thread_count())
        fold_at<Operation, T, T>(task, (i < before ? i : i + vectors * in_vector) * sizeof(T));
}

/* --- Kernels --------------------------------------------------------------------------------- */

/* Block b of a member's kernel meets block b of the others'. */
WEFT_DEVICE uint64_t *fold_epoch_word(const struct weft_gpu_channels &channels) {
    return &weft_gpu_channel_head(&channels, channels.me, weft_block_index())->epoch;
}

/* Before: all members have come, and what their streams have stored can be read. False if the job
 * is over. */
WEFT_DEVICE bool fold_meet_before(struct weft_gpu_abort abort,
                                  const struct weft_gpu_channels &channels, uint64_t epoch) {
    if ((int)weft_block_thread() < channels.n)
        weft_fence_sys();
    weft_channel_tell_ready(&channels, weft_block_index(), epoch);
    return weft_channel_await(abort, &channels, weft_block_index(), WEFT_GPU_CHANNEL_READY, epoch);
}

/* Behind it: what this member has folded is where it belongs, and so is what the others have. */
WEFT_DEVICE void fold_meet_behind(struct weft_gpu_abort abort,
                                  const struct weft_gpu_channels &channels, uint64_t epoch) {
    uint32_t channel = weft_block_index();
    weft_channel_tell_done(&channels, channel, epoch);
    if (weft_channel_await(abort, &channels, channel, WEFT_GPU_CHANNEL_DONE, epoch))
        weft_channel_epoch_end(fold_epoch_word(channels), epoch);
}

/* Channels of no members: there is nobody to meet. */
template <class Operation, class T>
WEFT_DEVICE void fold_call(struct weft_gpu_abort abort, const struct weft_gpu_channels &channels,
                           const struct weft_fold_task &task) {
    bool meets = channels.n > 0;
    uint64_t epoch = meets ? weft_channel_epoch_begin(fold_epoch_word(channels)) : 0;
    if (meets && !fold_meet_before(abort, channels, epoch))
        return;
    fold<Operation, T>(task);
    if (meets)
        fold_meet_behind(abort, channels, epoch);
}

#define WEFT_FOLD_KERNEL(X, family, op, number, OP, NUMBER)                                        \
    extern "C" __global__ void __launch_bounds__(WEFT_FOLD_THREADS, 1)                             \
        weftk_fold_##op##_##number(struct weft_gpu_abort abort, struct weft_gpu_channels channels, \
                                   struct weft_fold_task task) {                                   \
        fold_call<fold_##op, number_##number>(abort, channels, task);                              \
    }

#endif
