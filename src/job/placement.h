/* SPDX-License-Identifier: BSD-3-Clause */
/* Decides which PEs are near and which are far.
 *
 * The slots of a window belong to PEs at equal distances. So each host's PEs are divided into
 * arithmetic progressions. Every PE computes the same ones: a progression begins with the host's
 * first PE that belongs to none yet, takes the distance to the next such PE as its step, and
 * continues as far as it can. PEs of one progression are near to each other. All others are far,
 * even on the same host. */
#ifndef WEFT_JOB_PLACEMENT_H
#define WEFT_JOB_PLACEMENT_H

#include <stdbool.h>
#include "job/job.h"
#include "job/window.h"

/* Finds the progression of `pe`: among the PEs of its host, or, in a job on one host, of the host
 * that WEFT_PRETEND_HOSTS assigns. Returns 0, or -errno after logging the reason. */
int weft_placement_read(int pe, int npes, struct weft_slots *slots);

static inline bool weft_slots_have(const struct weft_slots *slots, int pe) {
    uint32_t distance = (uint32_t)pe - slots->first;
    return distance % slots->step == 0 && distance / slots->step < slots->count;
}

/* Returns whether `pe` is a PE of the job that has no slot in this PE's windows. All windows have
 * the same slots, so the check reads only the scratch. */
static inline bool weft_is_far(int pe) {
    const struct weft_window *w = &weft_windows.scratch.window;
    return weft_window_slot(w, pe) >= w->count && (unsigned)pe < (unsigned)weft_job.npes;
}

#endif
