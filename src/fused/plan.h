/* SPDX-License-Identifier: BSD-3-Clause */
/* Decides which products the kernels of hopper.cu take, and with which tiles. No GPU is asked. */
#ifndef WEFT_FUSED_PLAN_H
#define WEFT_FUSED_PLAN_H

#include <weft.h>

/* Returns whether the kernels run on a GPU of this compute capability; 90 means 9.0. */
bool weft_plan_runs(int capability);

/* Returns whether the kernels compute c = a x b on a GPU of this compute capability: BF16 or F16, a
 * row-major a; rows of a and b (of a transposed b: columns) that begin at multiples of 16 bytes; at
 * least one product to add up; and a c that is not empty. */
bool weft_plan_fits(int capability, const weft_matrix *a, const weft_matrix *b,
                    const weft_matrix *c);

/* Returns whether a kernel gathers the shards of n members, which are like this shard, and are
 * dense: then their rows begin at multiples of 16 bytes. The result is the same on all members. */
bool weft_plan_gathers(const weft_matrix *shard, int n);

/* Returns whether a kernel adds the rows x cols products of n members. The result is the same on
 * all members. */
bool weft_plan_reduces(size_t rows, size_t cols, weft_dtype dtype, int n);

/* Returns the width of tiles with the shortest estimated time, among the kernels' widths, for a
 * product of rows x cols elements on a GPU with this number of multiprocessors. `transposed` is the
 * order of b. */
unsigned weft_plan_width(size_t rows, size_t cols, bool transposed, int sms);

#endif
