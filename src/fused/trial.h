/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the fastest of several ways to do the same work on a GPU. */
#ifndef WEFT_FUSED_TRIAL_H
#define WEFT_FUSED_TRIAL_H

#include <stdbool.h>
#include "base/cuda.h"

/* Enqueues the work in one way; returns 0, or an error if that way cannot do it. */
typedef int weft_trial_work(const void *context, int way, weft_cu_stream stream);

/* Returns the fastest of the ways [0, ways): way 0 unless another one takes at least 1 % less time;
 * -1 if way 0 cannot do the work, or cannot be captured. Each way is measured as a graph. Other
 * ways are left out if they cannot be captured, or take 8 times as long as way 0. Runs on a stream
 * of its own: first 20 ms of work, so that the GPU is as hot as in long runs, then five rounds, in
 * each of which every way takes about 3 ms, or runs once. Must be called in the GPU's context. */
int weft_trial_fastest(weft_trial_work *enqueue, const void *context, int ways);

/* --- Trials of work that the members of a team do together ------------------------------------
 * All members call the same functions with the same numbers, on a stream that has no other work. */

struct weft_contest {
    weft_trial_work *enqueue;
    const void *context;
    weft_cu_stream stream;
};

/* Does the work in each way, so that all code is loaded. Returns the seconds that way 0 takes then;
 * infinite if one of the ways cannot do the work. */
double weft_trial_once(const struct weft_contest *contest, int ways);

/* Stores the median of the seconds that each way takes once; `once` is an estimate for way 0. The
 * GPU is made as hot as for weft_trial_fastest. */
void weft_trial_measure(const struct weft_contest *contest, int ways, double once, double *seconds);

/* Returns whether a way with these seconds replaces way 0. */
bool weft_trial_better(double seconds, double of_way_0);

#endif
