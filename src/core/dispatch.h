/* SPDX-License-Identifier: BSD-3-Clause */
/* Dispatch: which operation table (job/operations.h) serves an access that the near path of
 * core/rma.h and core/amo.h cannot serve. */
#ifndef WEFT_CORE_DISPATCH_H
#define WEFT_CORE_DISPATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "job/placement.h"
#include "job/space.h"
#include "far/far.h"

/* Returns the table of the memory space that holds the symmetric address or the local one. `local`
 * is NULL if the local side is a value. NULL: both lie in host memory. */
static inline const struct weft_operations *weft_dispatch_of_memory(const void *symmetric,
                                                                    const void *local) {
    if (__builtin_expect(!weft_job.devices, 1))
        return NULL;
    const struct weft_operations *device = weft_space_device->operations;
    bool concerned = local ? device->concerns(symmetric, local) : weft_space_holds(symmetric);
    return concerned ? device : NULL;
}

/* Returns the table for an access to `symmetric` on `pe`; the addresses are those of
 * weft_dispatch_of_memory. NULL: this processor's loads and stores, or an address of no memory. */
static inline const struct weft_operations *weft_dispatch_of(const void *symmetric,
                                                             const void *local, int pe) {
    if (__builtin_expect(!weft_job.dispatch, 1))
        return NULL;
    const struct weft_operations *operations = weft_dispatch_of_memory(symmetric, local);
    return !operations && weft_is_far(pe) ? &weft_far_operations : operations;
}

/* Orders the operations on GPU memory that host calls have started before all that they start
 * later, by waiting for them. Messages are ordered by weft_far_fence. */
static inline void weft_dispatch_fence(void) {
    if (__builtin_expect(weft_job.devices, 0))
        weft_space_device->operations->quiet();
}

/* Waits until the operations that host calls have started through a table are complete. */
static inline void weft_dispatch_quiet(void) {
    if (__builtin_expect(!weft_job.dispatch, 1))
        return;
    weft_dispatch_fence();
    if (weft_job.far)
        weft_far_operations.quiet();
}

/* Returns whether a table reaches [p, p + bytes) of `pe`, which is not near. Objects are the same
 * on all PEs. Not inline, so that callers that try near memory first keep their registers. */
bool weft_dispatch_finds(const void *p, size_t bytes, int pe) __attribute__((cold));

/* Returns whether [p, p + bytes) is symmetric, in host memory or in another memory space. */
static inline bool weft_dispatch_symmetric(const void *p, size_t bytes, int pe) {
    return __builtin_expect(weft_near(p, bytes, pe) != NULL, 1) ||
           weft_dispatch_finds(p, bytes, pe);
}

#endif
