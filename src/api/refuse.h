/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks for extensions, which return -errno with text where the standard's calls end the job
 * (core/misuse.h). */
#ifndef WEFT_API_REFUSE_H
#define WEFT_API_REFUSE_H

#include <stdint.h>
#include "boot/boot.h"

/* -EPERM outside of shmem_init and shmem_finalize. Where the job is over, this PE ends, too: what
 * it has waited for is worth nothing. */
int weft_refuse_phase(void);

int weft_refuse_null(const char *argument, const void *p);

/* Makes a subset of the arguments; -EINVAL unless they are PEs of the job, each once, and this one
 * is among them. The list stays the caller's. */
int weft_refuse_list(const int *pes, int npes, uint64_t tag, struct weft_boot_subset *subset);

#endif
