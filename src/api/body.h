/* SPDX-License-Identifier: BSD-3-Clause */
/* The bodies of routines that have a deprecated name as well. The caller has entered the call. The
 * contracts are the standard's. */
#ifndef WEFT_API_BODY_H
#define WEFT_API_BODY_H

#include <stddef.h>

/* Calls weft_init after making all kinds of memory of this library known. */
int weft_setup_begin(int requested, int *provided);

/* Initialises the job, or ends it with an error. */
void weft_setup_init(void);

void *weft_memory_malloc(size_t size);
void *weft_memory_align(size_t alignment, size_t size);
void *weft_memory_realloc(void *ptr, size_t size);
void weft_memory_free(void *ptr);

#endif
