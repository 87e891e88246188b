/* SPDX-License-Identifier: BSD-3-Clause */
/* Arrays that non-blocking calls may still read or write: held until the call's context is quiet,
 * so that a program may let go of them before. */
#ifndef PYWEFT_PENDING_H
#define PYWEFT_PENDING_H

#include "array.h"

/* Holds the array in place of the caller, which holds none then. False with MemoryError. */
bool pyweft_pending_hold(shmem_ctx_t ctx, struct pyweft_array *array);

/* How many have been held so far: what was begun before a quiet is what it completes. */
uint64_t pyweft_pending_count(void);

/* Lets go of the first `begun` arrays, as far as they are the context's. */
void pyweft_pending_drop(shmem_ctx_t ctx, uint64_t begun);

/* Completes everything, and lets go of all. Keeps the job's loss for the next call to tell. */
void pyweft_pending_finish(void);

#endif
