/* SPDX-License-Identifier: BSD-3-Clause */
/* Extensions of OpenSHMEM, with the prefix that the specification gives them: shmemx_.
 * They return 0, or a negative errno with text in weft_last_error() (weft.h). */
#ifndef SHMEMX_H
#define SHMEMX_H

#include <shmem.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* --- Starting without a launcher of processing elements --------------------------------------- */

/* Names a job that is to be. Whoever knows it and runs under the same user can take part: pass it
 * on as carefully as a password. */
typedef struct {
    unsigned char bytes[128];
} shmemx_uniqueid_t;

/* Makes a new id. One process of the job to be calls it, and brings the id to the others by
 * whatever means it has: a broadcast, a pipe, a file. Local; may be called before shmem_init. */
int shmemx_get_uniqueid(shmemx_uniqueid_t *id);

/* How the PEs find each other: exactly one of these. */
#define SHMEMX_INIT_WITH_UNIQUEID  (1U << 0) /* uniqueid is meant */
#define SHMEMX_INIT_WITH_ALLGATHER (1U << 1) /* allgather and context are meant */

/* Fields that no flag speaks of are not read: later versions append fields. */
typedef struct {
    int pe, npes;  /* which PE this process is to be, of how many */
    int requested; /* thread level, as of shmem_init_thread */
    const shmemx_uniqueid_t *uniqueid;
    /* Collective over the PEs to be: each gives `bytes` of `mine`, and all receive what PE i gave
     * at all + i * bytes. 0, or the call of shmemx_init_attr fails. Called within it only. */
    int (*allgather)(const void *mine, void *all, size_t bytes, void *context);
    void *context;
} shmemx_init_attr_t;

/* shmem_init_thread for processes that no launcher of PEs started, or that want to be another job
 * than the one they were started as. Collective over the job, and the first initialisation of the
 * process; all later ones come back to the same job. */
int shmemx_init_attr(unsigned flags, const shmemx_init_attr_t *attr);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
