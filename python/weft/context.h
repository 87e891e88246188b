/* SPDX-License-Identifier: BSD-3-Clause */
/* weft.Ctx: a context, whose calls are ordered and completed by themselves. Its PEs are the ranks
 * of its team. */
#ifndef WEFT_PYTHON_CONTEXT_H
#define WEFT_PYTHON_CONTEXT_H

#include "module.h"

/* By which context a call goes to which PE. */
struct weft_route {
    shmem_ctx_t ctx;
    int pe;       /* as the context counts */
    int world_pe; /* the same among all PEs */
};

/* The default context, if ctx is NULL or None. TypeError, ValueError for a context that is
 * destroyed or another thread's, or that goes along with a stream, or for a PE that it does not
 * have. */
bool weft_route_take(const char *call, PyObject *ctx, PyObject *pe, weft_stream stream,
                     struct weft_route *route);

/* The context alone, for calls about no PE. */
bool weft_ctx_take(const char *call, PyObject *ctx, weft_stream stream, shmem_ctx_t *handle);

#endif
