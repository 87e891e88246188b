/* SPDX-License-Identifier: BSD-3-Clause */
/* Put and get. The near path is one copy with nothing in between.
 *
 * All return 0, or -ERANGE when there is no such PE, or -EFAULT when the symmetric argument is not
 * symmetric over its whole length; nothing has been touched then. PEs are world numbers. */
#ifndef WEFT_CORE_RMA_H
#define WEFT_CORE_RMA_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "core/window.h"

/* Why weft_near gave NULL: -ERANGE, -EFAULT, or 0 for an empty access, which may name anything. */
int weft_near_error(const void *p, size_t bytes, int pe);

/* dest on `pe` <- source here. */
static inline int weft_put(void *dest, const void *source, size_t bytes, int pe) {
    void *near = weft_near(dest, bytes, pe);
    if (__builtin_expect(!near, 0))
        return weft_near_error(dest, bytes, pe);
    memcpy(near, source, bytes);
    return 0;
}

/* dest here <- source on `pe`. */
static inline int weft_get(void *dest, const void *source, size_t bytes, int pe) {
    const void *near = weft_near(source, bytes, pe);
    if (__builtin_expect(!near, 0))
        return weft_near_error(source, bytes, pe);
    memcpy(dest, near, bytes);
    return 0;
}

#endif
