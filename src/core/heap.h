/* SPDX-License-Identifier: BSD-3-Clause */
/* The symmetric heap: an arena (core/arena.h) over the heap segment. If the machine has too little
 * memory, an allocation returns NULL on every PE and one line is logged. */
#ifndef WEFT_CORE_HEAP_H
#define WEFT_CORE_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include "job/space.h"

int weft_heap_open(void);
void weft_heap_close(void);

/* Returns the bytes of this PE's heap that are reserved but have no memory yet. */
size_t weft_heap_promised(void);

/* The host's heap, and the heap that contains `p`: the host's unless `p` is in another space. */
extern const struct weft_heap weft_heap_host;
static inline const struct weft_heap *weft_heap_of(const void *p) {
    bool device = __builtin_expect(weft_job.devices, 0) && weft_space_holds(p);
    return device ? &weft_space_device->heap : &weft_heap_host;
}

#endif
