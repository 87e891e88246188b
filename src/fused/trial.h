/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the fastest of several ways to do the same work on a GPU. */
#ifndef WEFT_FUSED_TRIAL_H
#define WEFT_FUSED_TRIAL_H

#include "base/cuda.h"

/* Enqueues the work in one way; returns 0, or an error if that way cannot do it. */
typedef int weft_trial_work(const void *context, int way, weft_cu_stream stream);

/* Returns the fastest of the ways [0, ways): way 0 unless another one takes at least 1 % less; -1
 * if the GPU cannot do the work in way 0. It is done on a stream of its own, and until the GPU is
 * as hot as in long runs: for 20 ms, then for each way five times 3 ms, or five times if once takes
 * longer. Must be called in the GPU's context. */
int weft_trial_fastest(weft_trial_work *enqueue, const void *context, int ways);

#endif
