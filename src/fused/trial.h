/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the fastest of several ways to do the same work on a GPU. */
#ifndef WEFT_FUSED_TRIAL_H
#define WEFT_FUSED_TRIAL_H

#include "base/cuda.h"

/* Enqueues the work in one way; returns 0, or an error if that way cannot do it. */
typedef int weft_trial_work(const void *context, int way, weft_cu_stream stream);

/* Returns the fastest of the ways [0, ways): way 0 unless another one takes at least 1 % less. The
 * work is done some thousand times, on a stream of its own, until the GPU is as hot as in long
 * runs; that takes about 20 ms, and 15 ms for each way. Returns 0 also if the GPU cannot do it.
 * Must be called in the GPU's context. */
int weft_trial_fastest(weft_trial_work *enqueue, const void *context, int ways);

#endif
