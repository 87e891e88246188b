/* SPDX-License-Identifier: BSD-3-Clause */
/* The initialisation that shmem_init and the deprecated start_pes share. */
#ifndef WEFT_API_SETUP_H
#define WEFT_API_SETUP_H

/* weft_init, with all the kinds of memory that this library has. */
int weft_setup_begin(int requested, int *provided);

/* Returns initialised, or ends the job. */
void weft_setup_init(void);

#endif
