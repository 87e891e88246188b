/* SPDX-License-Identifier: BSD-3-Clause */
/* Reductions of several arrays into one by a kernel, with the results of coll/fold.h: sources are
 * folded in their order.
 *
 * A thread loads several words of several sources before it folds them, 16 bytes at a time if all
 * arrays have the same alignment to 16 bytes. The same thread reads an element from all sources and
 * then writes it to all destinations, so a destination may be a source.
 *
 * Members synchronise in the kernel before and after the fold, by the words of their channels. Each
 * operation has a file that defines its kernels with WEFT_FOLD_KERNEL; the bitwise ones share one.
 */
#ifndef WEFT_COLL_FOLD_KERNEL_CUH
#define WEFT_COLL_FOLD_KERNEL_CUH

#include "transport/gpu_channel.cuh"
#include "coll/fold.cuh"

/* --- The loop -------------------------------------------------------------------------------- */

/* The words of all arrays that a thread folds together: those at `at`, at + step, ... bytes, before
 * `end`. */
struct fold_words {
    size_t at, step, end;
};

WEFT_DEVICE bool is_word(const struct fold_words &words, int w) {
    return words.at + w * words.step < words.end;
}

/* All words of several sources are loaded before the first is folded. */
template <class Operation, class T, class Word, int WORDS>
WEFT_DEVICE void fold_at(const struct weft_fold_task &task, const struct fold_words &words) {
    enum { AHEAD = 4 };
    weft_unpacked<T, Word> so_far[WORDS] = {};
    WEFT_ROLLED
    for (int s = 0; s < task.nsources; s += AHEAD) {
        Word next[AHEAD][WORDS];
        WEFT_UNROLL
        for (int k = 0; k < AHEAD; k++) {
            const char *source = weft_array_of(&task.sources, s + k < task.nsources ? s + k : 0);
            WEFT_UNROLL
            for (int w = 0; w < WORDS; w++)
                if (s + k < task.nsources && is_word(words, w))
                    next[k][w] = weft_ld_weak((const Word *)(source + words.at + w * words.step));
        }
        WEFT_UNROLL
        for (int k = 0; k < AHEAD; k++) {
            WEFT_UNROLL
            for (int w = 0; w < WORDS; w++)
                if (s + k == 0)
                    so_far[w] = unpack<T>(next[0][w]);
                else if (s + k < task.nsources)
                    fold_word<Operation>(&so_far[w], next[k][w]);
        }
    }
    Word folded[WORDS];
    WEFT_UNROLL
    for (int w = 0; w < WORDS; w++)
        folded[w] = pack<Operation, T, Word>(so_far[w], task.divisor);
    WEFT_ROLLED
    for (int d = 0; d < task.ndests; d++) {
        char *dest = weft_array_of(&task.dests, d) + words.at;
        WEFT_UNROLL
        for (int w = 0; w < WORDS; w++)
            if (is_word(words, w))
                weft_st_weak((Word *)(dest + w * words.step), folded[w]);
    }
}

/* Folds the words from `begin` to `end`, with all threads. */
template <class Operation, class T, class Word, int WORDS>
WEFT_DEVICE void fold_range(const struct weft_fold_task &task, size_t begin, size_t end) {
    struct fold_words words = {begin + weft_thread_index() * sizeof(Word),
                               weft_thread_count() * sizeof(Word), end};
    WEFT_ROLLED
    for (; words.at < end; words.at += WORDS * words.step)
        fold_at<Operation, T, Word, WORDS>(task, words);
}

/* Folds vectors of 16 bytes, and element by element the ends before the first and after the last
 * vector; all elements, if the arrays are not equally aligned. */
template <class Operation, class T> WEFT_DEVICE void fold(const struct weft_fold_task &task) {
    uintptr_t begin = (uintptr_t)task.sources.first, unlike = begin ^ (uintptr_t)task.dests.first;
    unlike |= (uintptr_t)task.sources.step | (uintptr_t)task.dests.step;
    size_t bytes = task.nelems * sizeof(T), before = (16 - begin % 16) % 16;
    if (unlike % 16 != 0 || begin % sizeof(T) != 0 || before > bytes)
        before = bytes;
    size_t after = before + (bytes - before) / 16 * 16;
    fold_range<Operation, T, number_vector, 2>(task, before, after);
    WEFT_ROLLED
    for (int edge = 0; edge < 2; edge++)
        fold_range<Operation, T, T, 1>(task, edge ? after : 0, edge ? bytes : before);
}

/* --- Kernels --------------------------------------------------------------------------------- */

/* Block b of a member's kernel synchronises with block b of the other members' kernels. */
WEFT_DEVICE uint64_t *fold_epoch_word(const struct weft_gpu_channels &channels) {
    return &weft_gpu_channel_head(&channels, channels.me, weft_block_index())->epoch;
}

/* Waits until all members have arrived, and the stores of their streams can be read. Returns false
 * if the job is over. */
WEFT_DEVICE bool fold_meet_before(struct weft_gpu_abort abort,
                                  const struct weft_gpu_channels &channels, uint64_t epoch) {
    if ((int)weft_block_thread() < channels.n)
        weft_fence_sys();
    weft_channel_tell_ready(&channels, weft_block_index(), epoch);
    return weft_channel_await(abort, &channels, weft_block_index(), WEFT_GPU_CHANNEL_READY, epoch);
}

/* Waits until all members have stored their results. */
WEFT_DEVICE void fold_meet_after(struct weft_gpu_abort abort,
                                 const struct weft_gpu_channels &channels, uint64_t epoch) {
    uint32_t channel = weft_block_index();
    weft_channel_tell_done(&channels, channel, epoch);
    if (weft_channel_await(abort, &channels, channel, WEFT_GPU_CHANNEL_DONE, epoch))
        weft_channel_epoch_end(fold_epoch_word(channels), epoch);
}

/* If `channels` has no members, there is no synchronisation. */
template <class Operation, class T>
WEFT_DEVICE void fold_call(struct weft_gpu_abort abort, const struct weft_gpu_channels &channels,
                           const struct weft_fold_task &task) {
    bool meets = channels.n > 0;
    uint64_t epoch = meets ? weft_channel_epoch_begin(fold_epoch_word(channels)) : 0;
    if (meets && !fold_meet_before(abort, channels, epoch))
        return;
    fold<Operation, T>(task);
    if (meets)
        fold_meet_after(abort, channels, epoch);
}

#define WEFT_FOLD_KERNEL(X, family, op, number, OP, NUMBER)                                        \
    extern "C" __global__ void __launch_bounds__(WEFT_FOLD_THREADS, 1)                             \
        weftk_fold_##op##_##number(struct weft_gpu_abort abort, struct weft_gpu_channels channels, \
                                   struct weft_fold_task task) {                                   \
        weft_dependency_wait();                                                                    \
        fold_call<fold_##op, number_##number>(abort, channels, task);                              \
    }

#endif
