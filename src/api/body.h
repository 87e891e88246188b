/* SPDX-License-Identifier: BSD-3-Clause */
/* The bodies of routines that have a deprecated name besides, in a call that has been entered.
 * Contracts as in the standard. */
#ifndef WEFT_API_BODY_H
#define WEFT_API_BODY_H

#include <stddef.h>

/* weft_init, with all the kinds of memory that this library has. */
int weft_setup_begin(int requested, int *provided);

/* Returns initialised, or ends the job. */
void weft_setup_init(void);

void *weft_memory_malloc(size_t size);
void *weft_memory_align(size_t alignment, size_t size);
void *weft_memory_realloc(void *ptr, size_t size);
void weft_memory_free(void *ptr);

#endif
