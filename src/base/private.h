/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses that are this process's ordinary memory for certain, whatever else maps memory: the
 * calling thread's stack as far as it is in use, and what brk has given, which is where malloc
 * takes small objects from. No system call but for a thread's first question. */
#ifndef WEFT_BASE_PRIVATE_H
#define WEFT_BASE_PRIVATE_H

#include <stdbool.h>

/* False says nothing. */
bool weft_private_holds(const void *p);

#endif
