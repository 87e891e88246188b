/* SPDX-License-Identifier: BSD-3-Clause */
/* The symmetric heap: an arena (core/arena.h) over the heap segment. What the machine cannot give
 * is NULL on every PE, with one line from PE 0. */
#ifndef WEFT_CORE_HEAP_H
#define WEFT_CORE_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include "job/space.h"

int weft_heap_open(void);
void weft_heap_close(void);

/* Bytes of this PE's heap that were granted to it and have no memory behind them yet. */
size_t weft_heap_promised(void);

/* This heap, and the one that `p` lies in: the host's where it lies in none. */
extern const struct weft_heap weft_heap_host;
static inline const struct weft_heap *weft_heap_of(const void *p) {
    bool device = __builtin_expect(weft_job.devices, 0) && weft_space_holds(p);
    return device ? &weft_space_device->heap : &weft_heap_host;
}

#endif
