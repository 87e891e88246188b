/* SPDX-License-Identifier: BSD-3-Clause */
/* Products by the kernels of hopper.cu. Functions return 0 or -errno with text, and must be called
 * in the GPU's context. */
#ifndef WEFT_FUSED_HOPPER_H
#define WEFT_FUSED_HOPPER_H

#include <weft.h>
#include "device/half.h"

/* Enqueues c = a x b on a stream, in tiles of `width` columns. The matrices must satisfy
 * weft_plan_fits; `width` is a width that weft_plan_width returns for b's order. */
int weft_hopper_enqueue(const weft_matrix *a, const weft_matrix *b, const weft_matrix *c,
                        unsigned width, weft_cu_stream stream);

/* The members that run a kernel with an exchange, and the half through which they exchange data.
 * All members launch the kernel in the same calls of the half; each launch is also a meeting of the
 * members. */
struct weft_hopper_team {
    int me, n; /* 2 to WEFT_HOPPER_MEMBERS */
    const struct weft_device_half *half;
};

/* Enqueues c = A x b, where A is the members' shards, stacked by rows. Slot m of the half receives
 * member m's shard, without gaps between its rows; this member's slot is not written. `own` is this
 * member's shard: dense and row-major, with rows that begin at multiples of 16 bytes. own, b and c
 * must satisfy weft_plan_fits. If b and c are NULL, the shards are only gathered. */
int weft_hopper_enqueue_gathered(const struct weft_hopper_team *team, const weft_matrix *own,
                                 const weft_matrix *b, const weft_matrix *c, unsigned width,
                                 weft_cu_stream stream);

/* Enqueues c = the sum of the members' products: all rows of the sum if for_all, otherwise this
 * member's rows. The sizes must satisfy weft_plan_reduces. `product` is dense memory for this
 * member's product a x b; a, b and `product` must satisfy weft_plan_fits. If a is NULL, `product`
 * contains the product already, and only b's order is read, to choose the kernel. c is GPU memory;
 * c and each of its rows begin at multiples of 16 bytes. The half has one slot for each member's
 * rows of the sum, two if for_all. */
int weft_hopper_enqueue_reduced(const struct weft_hopper_team *team, const weft_matrix *a,
                                const weft_matrix *b, const weft_matrix *c,
                                const weft_matrix *product, bool for_all, unsigned width,
                                weft_cu_stream stream);

#endif
