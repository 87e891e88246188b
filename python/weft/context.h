/* SPDX-License-Identifier: BSD-3-Clause */
/* weft.Ctx: a context, whose calls are ordered and completed by themselves. Its PEs are the ranks
 * of its team. */
#ifndef PYWEFT_CONTEXT_H
#define PYWEFT_CONTEXT_H

#include "module.h"

/* By which context a call goes to which PE. */
struct pyweft_target {
    shmem_ctx_t ctx;
    int pe;       /* as the context counts */
    int world_pe; /* the same among all PEs */
};

/* The default context, if ctx is NULL or None. TypeError, ValueError for a context that is
 * destroyed or another thread's, or that goes along with a stream, or for a PE that it does not
 * have. */
bool pyweft_target_take(const char *call, PyObject *ctx, PyObject *pe, weft_stream stream,
                        struct pyweft_target *target);

/* The context alone, for calls about no PE. */
bool pyweft_ctx_take(const char *call, PyObject *ctx, weft_stream stream, shmem_ctx_t *handle);

#endif
