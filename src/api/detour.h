/* SPDX-License-Identifier: BSD-3-Clause */
/* The way of a call that leaves the short one: because it is checked (api/checked.h), or because
 * one of its pointers may be a GPU's (core/device_rma.h). Off, a call pays for the test of one
 * flag. */
#ifndef WEFT_API_DETOUR_H
#define WEFT_API_DETOUR_H

#include "core/device_rma.h"
#include "core/job.h"
#include "core/window.h"

static inline bool weft_detour(void) {
    return __builtin_expect(weft_job.detour, 0);
}

static inline bool weft_devices(void) {
    return __builtin_expect(weft_job.devices, 0);
}

/* Whether an access is the GPU's work. `local` may be NULL: a word that is changed or looked at. */
static inline bool weft_for_device(const void *symmetric, const void *local) {
    if (!weft_devices())
        return false;
    return local ? weft_device_concerns(symmetric, local) : weft_device_holds(symmetric);
}

/* Whether [p, p + bytes) is symmetric, in the memory of the host or of a GPU. */
static inline bool weft_symmetric(const void *p, size_t bytes, int pe) {
    return weft_near(p, bytes, pe) || (weft_devices() && weft_device_near(p, bytes, pe));
}

/* Behind the ordering or completion of what processors have stored: that of what GPUs have. */
static inline void weft_complete_device(const char *call) {
    if (weft_devices())
        weft_device_quiet(call);
}

#endif
