/* SPDX-License-Identifier: BSD-3-Clause */
/* The way of a call that leaves the short one: because it is checked (api/checked.h), because one
 * of its pointers may be a GPU's (core/rma_space.h), or because it fetches a word that the program
 * may be polling, where PEs share processors (core/poll.h). Off, a call pays for the test of one
 * flag. */
#ifndef WEFT_API_DETOUR_H
#define WEFT_API_DETOUR_H

#include <string.h>
#include "core/job.h"
#include "core/poll.h"
#include "core/rma_space.h"
#include "core/window.h"

static inline bool weft_detour(void) {
    return __builtin_expect(weft_job.detour, 0);
}

static inline bool weft_fetch_detour(void) {
    return __builtin_expect(weft_job.fetch_detour, 0);
}

static inline bool weft_devices(void) {
    return __builtin_expect(weft_job.devices, 0);
}

/* Whether an access is the GPU's work. `local` may be NULL: a word that is changed or looked at. */
static inline bool weft_for_device(const void *symmetric, const void *local) {
    if (!weft_devices())
        return false;
    return local ? weft_space_device->rma->concerns(symmetric, local) : weft_space_holds(symmetric);
}

/* Behind a fetch: `bytes` of `pe`'s word have been seen, at `fetched` in the memory of the host. */
static inline void weft_fetched(const void *word, const void *fetched, size_t bytes, int pe,
                                const char *call) {
    uint64_t value = 0;
    if (!weft_job.oversubscribed || bytes == 0 || bytes > sizeof value)
        return;
    if (bytes == sizeof value) /* a copy of a constant size, for most of them */
        memcpy(&value, fetched, sizeof value);
    else
        memcpy(&value, fetched, bytes);
    weft_poll_look(word, pe, value, call);
}

/* Whether [p, p + bytes) is symmetric, in the memory of the host or of a GPU. */
static inline bool weft_symmetric(const void *p, size_t bytes, int pe) {
    return weft_near(p, bytes, pe) ||
           (weft_devices() && weft_space_device->rma->near(p, bytes, pe));
}

/* Behind the ordering or completion of what processors have stored: that of what GPUs have. */
static inline void weft_complete_device(const char *call) {
    if (weft_devices())
        weft_space_quiet(call);
}

#endif
