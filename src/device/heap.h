/* SPDX-License-Identifier: BSD-3-Clause */
/* The device heap: symmetric memory on the PEs' GPUs (shmemx_malloc). Like the host heap it grows
 * in extents that all PEs commit or none, and every PE runs the same allocator on the same calls.
 * Between weft_device_open and _close. */
#ifndef WEFT_DEVICE_HEAP_H
#define WEFT_DEVICE_HEAP_H

#include <stdbool.h>
#include <stddef.h>

struct weft_arena;

/* The objects of the device heap, and their allocation, as core/space.h has it. */
extern struct weft_arena weft_device_arena;
void *weft_device_malloc(struct weft_arena *arena, size_t bytes, size_t alignment, bool zero);
void *weft_device_realloc(struct weft_arena *arena, void *p, size_t bytes);
void weft_device_free(struct weft_arena *arena, void *p);

/* The bookkeeping of the device heap, whose addresses have been reserved. */
int weft_device_heap_open(void);
void weft_device_heap_close(void);

#endif
