/* SPDX-License-Identifier: BSD-3-Clause */
/* The initialisation that shmem_init and the deprecated start_pes share. `call` is the public name.
 */
#ifndef WEFT_API_SETUP_H
#define WEFT_API_SETUP_H

/* Returns initialised, or ends the job. */
void weft_setup_init(const char *call);

#endif
