/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks of arguments that every call makes. They are inline and cost a comparison; the functions
 * that they call are cold and do not return. `call` and `argument` are public names; `call` is
 * __func__. */
#ifndef WEFT_API_CHECK_H
#define WEFT_API_CHECK_H

#include <stddef.h>
#include <stdint.h>
#include <shmem.h>
#include "core/ctx.h"
#include "api/entry.h"

/* Refuses NULL for a local buffer, unless it is empty. */
static inline void weft_check_local(const char *call, const char *argument, const void *p,
                                    size_t bytes) {
    if (__builtin_expect(!p && bytes != 0, 0))
        weft_misuse_null(call, argument);
}

static inline void weft_check_cmp(const char *call, int cmp) {
    if (__builtin_expect(cmp < SHMEM_CMP_EQ || cmp > SHMEM_CMP_LE, 0))
        weft_misuse_constant(call, "cmp", cmp, "one of SHMEM_CMP_EQ, _NE, _GT, _GE, _LT, _LE");
}

/* Returns the world number of PE `pe` of the context. */
static inline int weft_check_pe(const char *call, shmem_ctx_t ctx, int pe) {
    int world_pe = weft_ctx_world_pe(ctx, pe);
    if (__builtin_expect(world_pe < 0, 0))
        weft_misuse_ctx(call, ctx, pe);
    if (weft_checked() && ctx != SHMEM_CTX_DEFAULT && !weft_ctx_allowed(weft_ctx_find(ctx)))
        weft_misuse_private(call, ctx);
    return world_pe;
}

/* Returns false for the invalid context, on which there is nothing to order or complete. */
static inline bool weft_check_ctx(const char *call, shmem_ctx_t ctx) {
    weft_check_running(call);
    if (__builtin_expect(ctx != SHMEM_CTX_DEFAULT && ctx != SHMEM_CTX_INVALID, 0) &&
        !weft_ctx_find(ctx))
        weft_misuse_ctx(call, ctx, 0);
    return ctx != SHMEM_CTX_INVALID;
}

/* Returns nelems * size, or SIZE_MAX if that overflows; the check of the access then fails. */
static inline size_t weft_check_bytes(size_t nelems, size_t size) {
    size_t bytes;
    return __builtin_expect(__builtin_mul_overflow(nelems, size, &bytes), 0) ? SIZE_MAX : bytes;
}

#endif
