/* SPDX-License-Identifier: BSD-3-Clause */
/* Recognises addresses that are certainly this process's ordinary memory, whatever else maps
 * memory: the used part of the calling thread's stack, and brk's memory, from which malloc takes
 * small objects. Makes no system call except for a thread's first question. */
#ifndef WEFT_BASE_HOST_MEMORY_H
#define WEFT_BASE_HOST_MEMORY_H

#include <stdbool.h>

/* Returns true if `p` is certainly ordinary host memory; false means unknown. */
bool weft_host_memory_holds(const void *p);

#endif
