/* SPDX-License-Identifier: BSD-3-Clause */
/* Products by the kernels of hopper.cu. Functions return 0 or -errno with text, and must be called
 * in the GPU's context. */
#ifndef WEFT_FUSED_HOPPER_H
#define WEFT_FUSED_HOPPER_H

#include <weft.h>
#include "device/half.h"

/* Enqueues c = a x b, which weft_plan_fits, by tiles of a width that weft_plan_width returns for
 * some size, in the order of a stream. */
int weft_hopper_enqueue(const weft_matrix *a, const weft_matrix *b, const weft_matrix *c,
                        unsigned width, weft_cu_stream stream);

/* The product of gathered shards: that of member m is received in slot m of the half, without gaps
 * between its rows. The own slot is left as it is. */
struct weft_hopper_shards {
    weft_matrix own; /* dense, and row-major, with rows that begin at multiples of 16 bytes */
    int me, n;       /* members, 2 to WEFT_HOPPER_MEMBERS */
    const struct weft_device_half *half;
};

/* Enqueues c = A x b, where A is the shards, of which the own one fits with b and c; b and c may be
 * NULL: then the shards are gathered only. All members call it in the same calls of the half; it is
 * a meeting of the members. */
int weft_hopper_enqueue_gathered(const struct weft_hopper_shards *shards, const weft_matrix *b,
                                 const weft_matrix *c, unsigned width, weft_cu_stream stream);

#endif
