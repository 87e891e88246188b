/* SPDX-License-Identifier: BSD-3-Clause */
/* weft.Ctx: an OpenSHMEM context, with its own ordering and completion. Its PE numbers are ranks of
 * its team. */
#ifndef PYWEFT_CONTEXT_H
#define PYWEFT_CONTEXT_H

#include "module.h"

/* The context and the PE that a call is made on. */
struct pyweft_target {
    shmem_ctx_t ctx;
    int pe;       /* a rank of the context's team */
    int world_pe; /* the same PE's number in the job */
};

/* Reads the arguments ctx and pe; a ctx of NULL or None is the default context. Returns false with
 * TypeError; with ValueError for a context that was destroyed, is private to another thread, or is
 * passed together with a stream, and for a PE that the context's team lacks; or with RuntimeError
 * if no job is running or the context was made before finalize(). */
bool pyweft_target_take(const char *call, PyObject *ctx, PyObject *pe, weft_stream stream,
                        struct pyweft_target *target);

/* Reads the argument ctx of a call that has no argument pe. */
bool pyweft_ctx_take(const char *call, PyObject *ctx, weft_stream stream, shmem_ctx_t *handle);

#endif
