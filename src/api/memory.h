/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory management by any name, in a call that has been entered. Contracts as in the standard. */
#ifndef WEFT_API_MEMORY_H
#define WEFT_API_MEMORY_H

#include <stddef.h>

void *weft_memory_malloc(size_t size);
void *weft_memory_align(size_t alignment, size_t size);
void *weft_memory_realloc(void *ptr, size_t size);
void weft_memory_free(void *ptr);

#endif
