/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks of arguments, and the one line that ends the job when one fails.
 *
 * The standard leaves misuse undefined and most routines have no error return, so the line has to
 * say it all: which routine, which argument, its value, and what to do. Checks are inline and cost
 * a compare; what they call is cold and does not return. `call` and `argument` are the public
 * names; `call` is __func__. */
#ifndef WEFT_API_MISUSE_H
#define WEFT_API_MISUSE_H

#include <stddef.h>
#include <stdint.h>
#include <shmem.h>
#include "core/ctx.h"
#include "core/job.h"

#define WEFT_COLD __attribute__((cold, noinline))

/* Not between shmem_init and shmem_finalize, or in a forked child. Also the first line of all
 * below: whatever else is wrong follows from this. */
WEFT_COLD _Noreturn void weft_misuse_phase(const char *call);

/* `p` is not symmetric over `bytes`, or there is no world PE `pe`. */
WEFT_COLD _Noreturn void weft_misuse_access(const char *call, const char *argument, const void *p,
                                            size_t bytes, int pe);

/* There is no such context, or no PE `pe` in its team. */
WEFT_COLD _Noreturn void weft_misuse_ctx(const char *call, shmem_ctx_t ctx, int pe);

/* A private context of another thread. */
WEFT_COLD _Noreturn void weft_misuse_private(const char *call, shmem_ctx_t ctx);

WEFT_COLD _Noreturn void weft_misuse_null(const char *call, const char *argument);

/* `value` is none of the constants `allowed`. */
WEFT_COLD _Noreturn void weft_misuse_constant(const char *call, const char *argument, long value,
                                              const char *allowed);

/* `member` is no number of one of `npes` members. */
WEFT_COLD _Noreturn void weft_misuse_member(const char *call, const char *argument, int member,
                                            int npes);

/* A stride of a collective, which must be positive. */
WEFT_COLD _Noreturn void weft_misuse_stride(const char *call, const char *argument,
                                            ptrdiff_t stride);

/* No live object is behind a handle; `allowed` says what to pass. */
WEFT_COLD _Noreturn void weft_misuse_handle(const char *call, const char *argument,
                                            const void *handle, const char *allowed);

/* The job runs; in checked mode also: the calling thread may call now. */
WEFT_COLD void weft_checked_caller(const char *call);
static inline void weft_check_running(const char *call) {
    if (__builtin_expect(!weft_job.plain, 0))
        weft_checked_caller(call);
}

/* A local buffer of `bytes`; an empty one may be NULL. */
static inline void weft_check_local(const char *call, const char *argument, const void *p,
                                    size_t bytes) {
    if (__builtin_expect(!p && bytes != 0, 0))
        weft_misuse_null(call, argument);
}

static inline void weft_check_cmp(const char *call, int cmp) {
    if (__builtin_expect(cmp < SHMEM_CMP_EQ || cmp > SHMEM_CMP_LE, 0))
        weft_misuse_constant(call, "cmp", cmp, "one of SHMEM_CMP_EQ, _NE, _GT, _GE, _LT, _LE");
}

/* The world number of the context's PE. */
static inline int weft_check_pe(const char *call, shmem_ctx_t ctx, int pe) {
    int world_pe = weft_ctx_world_pe(ctx, pe);
    if (__builtin_expect(world_pe < 0, 0))
        weft_misuse_ctx(call, ctx, pe);
    if (__builtin_expect(weft_job.checked, 0) && ctx != SHMEM_CTX_DEFAULT &&
        !weft_ctx_allowed(weft_ctx_find(ctx)))
        weft_misuse_private(call, ctx);
    return world_pe;
}

/* A context whose operations can be ordered or completed: there is one, or none at all, when
 * nothing is to be done. */
static inline bool weft_check_ctx(const char *call, shmem_ctx_t ctx) {
    weft_check_running(call);
    if (__builtin_expect(ctx != SHMEM_CTX_DEFAULT && ctx != SHMEM_CTX_INVALID, 0) &&
        !weft_ctx_find(ctx))
        weft_misuse_ctx(call, ctx, 0);
    return ctx != SHMEM_CTX_INVALID;
}

/* nelems * size, or more than any object has: the access then fails its own check. */
static inline size_t weft_check_bytes(size_t nelems, size_t size) {
    size_t bytes;
    return __builtin_expect(__builtin_mul_overflow(nelems, size, &bytes), 0) ? SIZE_MAX : bytes;
}

#endif
