/* SPDX-License-Identifier: BSD-3-Clause */
/* Arrays that non-blocking calls may still access. They are held until the quiet of the call's
 * context, so that the program may drop them earlier. */
#ifndef PYWEFT_PENDING_H
#define PYWEFT_PENDING_H

#include "array.h"

/* Moves the array into the list. On success the caller no longer holds it. Returns false with
 * MemoryError. */
bool pyweft_pending_hold(shmem_ctx_t ctx, struct pyweft_array *array);

/* Returns how many arrays were ever held. Taken before a quiet, this number says which of them the
 * quiet completes. */
uint64_t pyweft_pending_count(void);

/* Releases those of the first `begun` arrays that belong to the context. */
void pyweft_pending_drop(shmem_ctx_t ctx, uint64_t begun);

/* Completes all calls, and releases all arrays. If the job is lost meanwhile, the next call raises
 * the exception. */
void pyweft_pending_finish(void);

#endif
