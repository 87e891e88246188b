/* SPDX-License-Identifier: BSD-3-Clause */
/* Products by the kernels of hopper.cu. Functions return 0 or -errno with text, and must be called
 * in the GPU's context. */
#ifndef WEFT_FUSED_HOPPER_H
#define WEFT_FUSED_HOPPER_H

#include <weft.h>
#include "device/half.h"

/* Enqueues c = a x b, which weft_plan_fits, by tiles of a width that weft_plan_width returns for
 * some size and b's order, in the order of a stream. */
int weft_hopper_enqueue(const weft_matrix *a, const weft_matrix *b, const weft_matrix *c,
                        unsigned width, weft_cu_stream stream);

/* The members of a kernel that exchanges data, and the half through which they do. All members call
 * it in the same calls of the half; each is a meeting of the members. */
struct weft_hopper_team {
    int me, n; /* 2 to WEFT_HOPPER_MEMBERS */
    const struct weft_device_half *half;
};

/* Enqueues c = A x b, where A is the members' shards, stacked by rows. The shard of member m is
 * received in slot m of the half, without gaps between its rows; the own slot is left as it is. The
 * own shard is dense and row-major, with rows that begin at multiples of 16 bytes, and fits with b
 * and c; b and c may be NULL: then the shards are gathered only. */
int weft_hopper_enqueue_gathered(const struct weft_hopper_team *team, const weft_matrix *own,
                                 const weft_matrix *b, const weft_matrix *c, unsigned width,
                                 weft_cu_stream stream);

/* Enqueues c = the sum of the members' products: for_all says all of its rows, otherwise those of
 * this member. weft_plan_reduces all members' products. `product` is dense memory for the own one,
 * a x b, which fits; a is NULL if it is there already; then only b's order is read, which chooses
 * the kernel. c begins at a multiple of 16 bytes, and so do its rows; it lies in memory of the GPU.
 * The half has a slot of a member's rows for each member, twice if for_all. */
int weft_hopper_enqueue_reduced(const struct weft_hopper_team *team, const weft_matrix *a,
                                const weft_matrix *b, const weft_matrix *c,
                                const weft_matrix *product, bool for_all, unsigned width,
                                weft_cu_stream stream);

#endif
