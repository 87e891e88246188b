/* SPDX-License-Identifier: BSD-3-Clause */
/* The device heap: symmetric memory on the PEs' GPUs (shmemx_malloc). Like the host heap it grows
 * in extents that all PEs commit or none, and every PE runs the same allocator on the same calls.
 * Between weft_device_open and _close. */
#ifndef WEFT_DEVICE_HEAP_H
#define WEFT_DEVICE_HEAP_H

#include <stdbool.h>
#include <stddef.h>

/* As weft_heap_malloc and so on, over the device heap. Collective over WORLD. */
void *weft_device_malloc(size_t bytes, size_t alignment, bool zero, const char *call);
void *weft_device_realloc(void *p, size_t bytes, const char *call);
void weft_device_free(void *p, const char *call);

/* As weft_heap_check and weft_heap_find. */
void weft_device_check(const void *p, const char *call);
bool weft_device_find(const void *p, void **begin, size_t *bytes);

/* The bookkeeping of the device heap, whose addresses have been reserved. */
int weft_device_heap_open(const char *call);
void weft_device_heap_close(void);

#endif
