/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies and signals whose numbers lie in memory. They are read when the kernel runs, so that a
 * graph may be replayed with other numbers. */
#include <stdio.h>
#include "base/gpu.cuh"
#include "transport/gpu_kernel.h"
#include "transport/gpu_slice.h"

/* Reads a number that earlier work of this stream has written, or that was written before something
 * that the stream has waited for. */
WEFT_DEVICE int64_t slice_number(shmemx_number_t n) {
    if (!n.at)
        return n.value;
    return n.bytes == sizeof(int32_t) ? *(const int32_t *)n.at : *(const int64_t *)n.at;
}

/* --- Copies ----------------------------------------------------------------------------------- */

struct slice_run {
    char *to;
    const char *from;
    size_t bytes;
};

WEFT_DEVICE bool slice_side_fits(const char *side, int64_t begin, int64_t nelems,
                                 uint64_t array_nelems, int pe) {
    if (weft_slice_fits(begin, nelems, array_nelems))
        return true;
    printf("weft: PE %d: the %s of a copy on a stream has %llu elements: the GPU finds that %lld "
           "are to be copied, from number %lld on\n",
           pe, side, (unsigned long long)array_nelems, (long long)nelems, (long long)begin);
    return false;
}

/* Finds the elements to copy. All threads get the same result, and one of them prints errors. */
WEFT_DEVICE struct slice_run slice_find_run(void *to, const void *from,
                                            const struct weft_gpu_slices *s) {
    int64_t nelems = slice_number(s->nelems), to_begin = slice_number(s->to),
            from_begin = slice_number(s->from);
    if (weft_slice_fits(to_begin, nelems, s->to_nelems) &&
        weft_slice_fits(from_begin, nelems, s->from_nelems))
        return {(char *)to + (uint64_t)to_begin * s->elem_bytes,
                (const char *)from + (uint64_t)from_begin * s->elem_bytes,
                (uint64_t)nelems * s->elem_bytes};
    if (weft_thread_index() == 0 && slice_side_fits("dest", to_begin, nelems, s->to_nelems, s->pe))
        slice_side_fits("source", from_begin, nelems, s->from_nelems, s->pe);
    if (weft_thread_index() == 0)
        weft_trap();
    return {};
}

extern "C" __global__ void __launch_bounds__(512, 1)
    weftk_copy_slice(struct weft_gpu_abort, void *to, const void *from,
                     struct weft_gpu_slices slices) {
    weft_dependency_wait();
    struct slice_run run = slice_find_run(to, from, &slices);
    weft_copy_by(run.to, run.from, run.bytes, weft_thread_group_all(), 8);
}

/* --- Words ------------------------------------------------------------------------------------ */

WEFT_DEVICE uint32_t *slice_find_word(const struct weft_gpu_word32 *word) {
    int64_t index = slice_number(word->index);
    if (weft_slice_fits(index, 1, word->nelems))
        return (uint32_t *)word->words + index;
    printf("weft: PE %d: there are %llu signals: the GPU finds that number %lld is meant\n",
           word->pe, (unsigned long long)word->nelems, (long long)index);
    weft_trap();
    return NULL;
}

WEFT_DEVICE void slice_signal(const struct weft_gpu_signal32 *signal) {
    uint32_t *word = slice_find_word(&signal->word);
    int64_t value = slice_number(signal->value);
    if (value != (int32_t)value) {
        printf("weft: PE %d: a signal has 32 bits: the GPU finds a value of %lld\n",
               signal->word.pe, (long long)value);
        weft_trap();
    } else if (word && signal->add) {
        weft_red_add_sys(word, (uint32_t)value);
    } else if (word) {
        weft_st_release_sys(word, (uint32_t)value);
    }
}

extern "C" __global__ void weftk_signal32(struct weft_gpu_abort, struct weft_gpu_signal32 signal) {
    weft_dependency_wait();
    if (weft_thread_index() == 0)
        slice_signal(&signal);
}

/* Uses one block, whose barrier separates the copy from the signal. */
extern "C" __global__ void __launch_bounds__(512, 1)
    weftk_put_slice_signal(struct weft_gpu_abort, void *to, const void *from,
                           struct weft_gpu_slices slices, struct weft_gpu_signal32 signal) {
    weft_dependency_wait();
    if (weft_block_index() != 0)
        return;
    struct slice_run run = slice_find_run(to, from, &slices);
    weft_copy_by(run.to, run.from, run.bytes, weft_thread_group_block(), 8);
    weft_block_sync();
    if (weft_block_thread() == 0)
        slice_signal(&signal);
}

extern "C" __global__ void weftk_wait32(struct weft_gpu_abort abort, struct weft_gpu_word32 word,
                                        int cmp, shmemx_number_t value, uint32_t rest_ns) {
    weft_dependency_wait();
    if (weft_thread_index() != 0)
        return;
    const uint32_t *at = slice_find_word(&word);
    int64_t bound = slice_number(value);
    struct weft_spin spin = {};
    spin.rest_ns = rest_ns;
    while (at && !weft_compares(cmp, (int64_t)(int32_t)weft_ld_acquire_sys(at), bound) &&
           weft_spin(&spin, abort))
        continue;
}
