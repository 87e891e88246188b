/* SPDX-License-Identifier: BSD-3-Clause */
/* Slices of arrays, and signals of 32 bits, in the order of a stream. Like device/stream.h, but the
 * numbers may lie in memory, which the GPU reads when the stream gets there.
 *
 * If the host knows all numbers, a copy is an ordinary put or get. All functions return 0 or -errno
 * with text; -EINVAL means a slice that is not within its array, as far as the host knows, or a
 * signal of more than 32 bits. */
#ifndef WEFT_DEVICE_SLICE_H
#define WEFT_DEVICE_SLICE_H

#include <shmemx.h>
#include "device/stream.h"

/* `pe` owns the dest of a put, or the source of a get. */
struct weft_slice_copy {
    const shmemx_slice_t *dest, *source;
    shmemx_number_t nelems;
    size_t elem_bytes;
    int pe;
    weft_cu_stream stream;
};

struct weft_slice_signal {
    const shmemx_slice_t *words; /* of int32_t */
    shmemx_number_t value;
    enum weft_signal_op op;
    int pe;
};

int weft_stream_put_slice(const struct weft_slice_copy *copy);
int weft_stream_get_slice(const struct weft_slice_copy *copy);
int weft_stream_put_slice_signal(const struct weft_slice_copy *copy,
                                 const struct weft_slice_signal *signal);
int weft_stream_signal32(const struct weft_slice_signal *signal, weft_cu_stream stream);
int weft_stream_wait32(const shmemx_slice_t *words, int cmp, shmemx_number_t value,
                       weft_cu_stream stream);

#endif
