/* SPDX-License-Identifier: BSD-3-Clause */
/* Which PEs are near, and which are far.
 *
 * A window has slots of PEs that are evenly apart. So the PEs of a host are cut into arithmetic
 * progressions, the same ones on all PEs: each begins with the first PE that is in none yet, has
 * the distance to the next such one as its step, and goes on as far as it can. PEs are near to each
 * other if they are in one progression; all others are far, also those on the same host. */
#ifndef WEFT_JOB_PLACEMENT_H
#define WEFT_JOB_PLACEMENT_H

#include <stdbool.h>
#include "job/job.h"
#include "job/window.h"

/* The progression that `pe` is in; of one host, or of those that WEFT_PRETEND_HOSTS names where the
 * job has one alone. 0 or -errno, logged. */
int weft_placement_read(int pe, int npes, struct weft_slots *slots);

static inline bool weft_slots_have(const struct weft_slots *slots, int pe) {
    uint32_t distance = (uint32_t)pe - slots->first;
    return distance % slots->step == 0 && distance / slots->step < slots->count;
}

/* Whether `pe` is one of the job's that has no slot here. */
static inline bool weft_is_far(int pe) {
    const struct weft_window *w = &weft_windows.scratch.window;
    return weft_window_slot(w, pe) >= w->count && (unsigned)pe < (unsigned)weft_job.npes;
}

#endif
