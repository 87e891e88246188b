/* SPDX-License-Identifier: BSD-3-Clause */
/* Slices of arrays whose numbers a GPU reads when the stream gets there, and signals of 32 bits.
 *
 * What the host knows it has checked. A number that turns out wrong on the GPU ends the kernel: it
 * says what it found, and traps. */
#ifndef WEFT_TRANSPORT_GPU_SLICE_H
#define WEFT_TRANSPORT_GPU_SLICE_H

#include <shmemx.h>
#include "transport/gpu_copy.h"

/* Shared with kernels. */
struct weft_gpu_slices {
    shmemx_number_t to, from, nelems; /* the first element on either side, and how many */
    uint64_t to_nelems, from_nelems;  /* of the arrays */
    uint64_t elem_bytes;
    int pe; /* who speaks, if need be */
};

/* One of `nelems` words. */
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

/* Copies by multiprocessors, between arrays that they reach. */
int weft_gpu_copy_slice(void *to, const void *from, const struct weft_gpu_slices *slices,
                        weft_cu_stream stream);

/* The same and then the signal, in one kernel of one block. */
int weft_gpu_put_slice_signal(void *to, const void *from, const struct weft_gpu_slices *slices,
                              const struct weft_gpu_signal32 *signal, weft_cu_stream stream);

/* Sets a word, or adds to it, behind all earlier work of the stream. */
int weft_gpu_signal32(const struct weft_gpu_signal32 *signal, weft_cu_stream stream);

/* Sets a word of GPU memory without a multiprocessor. */
int weft_gpu_write32(int32_t *word, int32_t value, weft_cu_stream stream);

/* Holds the stream until the word compares (SHMEM_CMP_*), as signed numbers. */
int weft_gpu_wait32(const struct weft_gpu_word32 *word, int cmp, shmemx_number_t value,
                    weft_cu_stream stream);

/* True if elements [begin, begin + nelems) lie in an array of array_nelems. */
WEFT_ADDR bool weft_slice_fits(int64_t begin, int64_t nelems, uint64_t array_nelems) {
    return begin >= 0 && nelems >= 0 && (uint64_t)begin <= array_nelems &&
           (uint64_t)nelems <= array_nelems - (uint64_t)begin;
}

#endif
