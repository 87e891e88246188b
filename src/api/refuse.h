/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks for extensions: where the standard's calls end the job (core/misuse.h), these functions
 * set weft_last_error's text and return -errno. */
#ifndef WEFT_API_REFUSE_H
#define WEFT_API_REFUSE_H

#include <stdint.h>
#include "boot/boot.h"

/* Returns -EPERM before shmem_init and after shmem_finalize. If the job has been aborted, this PE
 * exits: the operations that it waits for cannot complete. */
int weft_refuse_phase(void);

int weft_refuse_null(const char *argument, const void *p);

/* Makes a subset of the arguments. Returns -EINVAL unless they are PEs of the job, each named once,
 * and include this one. The list still belongs to the caller. */
int weft_refuse_list(const int *pes, int npes, uint64_t tag, struct weft_boot_subset *subset);

#endif
