/* SPDX-License-Identifier: BSD-3-Clause */
/* Slices of arrays whose numbers a GPU reads when the stream gets there, and signals of 32 bits.
 *
 * The host has checked all numbers that it knows. A kernel that reads an invalid number prints it
 * and traps. */
#ifndef WEFT_TRANSPORT_GPU_SLICE_H
#define WEFT_TRANSPORT_GPU_SLICE_H

#include <shmemx.h>
#include "transport/gpu_copy.h"

/* Shared with kernels. */
struct weft_gpu_slices {
    shmemx_number_t to, from, nelems; /* the first element on either side, and the count */
    uint64_t to_nelems, from_nelems;  /* lengths of the arrays */
    uint64_t elem_bytes;
    int pe; /* named in error lines */
};

/* An element of an array of `nelems` words. */
struct weft_gpu_word32 {
    int32_t *words;
    uint64_t nelems;
    shmemx_number_t index;
    int pe;
};

struct weft_gpu_signal32 {
    struct weft_gpu_word32 word;
    shmemx_number_t value;
    bool add;
};

/* Copies by multiprocessors, which must be able to access both arrays. */
int weft_gpu_copy_slice(void *to, const void *from, const struct weft_gpu_slices *slices,
                        weft_cu_stream stream);

/* Copies like weft_gpu_copy_slice and then signals, in one kernel with one block. */
int weft_gpu_put_slice_signal(void *to, const void *from, const struct weft_gpu_slices *slices,
                              const struct weft_gpu_signal32 *signal, weft_cu_stream stream);

/* Sets a word, or adds to it, after all earlier work of the stream. */
int weft_gpu_signal32(const struct weft_gpu_signal32 *signal, weft_cu_stream stream);

/* Sets a word of GPU memory without using a multiprocessor. */
int weft_gpu_write32(int32_t *word, int32_t value, weft_cu_stream stream);

/* Holds the stream until the word satisfies the comparison (SHMEM_CMP_*), as signed numbers. */
int weft_gpu_wait32(const struct weft_gpu_word32 *word, int cmp, shmemx_number_t value,
                    weft_cu_stream stream);

/* Returns true if the elements [begin, begin + nelems) lie in an array of array_nelems. */
WEFT_ADDR bool weft_slice_fits(int64_t begin, int64_t nelems, uint64_t array_nelems) {
    return begin >= 0 && nelems >= 0 && (uint64_t)begin <= array_nelems &&
           (uint64_t)nelems <= array_nelems - (uint64_t)begin;
}

#endif
