/* SPDX-License-Identifier: BSD-3-Clause */
/* Contexts: streams of operations that are ordered and completed by themselves, over a team's PEs.
 *
 * Between near PEs every operation is done when its call returns, so a context is no more than its
 * options and its team's member_list, copied here to be one load away. What goes to far PEs is not
 * told apart by context, because every call would have to carry it: a quiet of one completes all. A
 * handle is the entry's number and a generation; the entry holds the handle that is alive. Creating
 * is local. */
#ifndef WEFT_CORE_CTX_H
#define WEFT_CORE_CTX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <shmem.h>
#include "job/member_list.h"

#define WEFT_CTXS_MAX 1024 /* a power of two */

struct weft_ctx {
    _Atomic(uintptr_t) handle;           /* 0: free. Written last, cleared first */
    struct weft_member_list member_list; /* of the team */
    int npes;
    uint32_t generation; /* of the last handle */
    long options;
    shmem_team_t team;
    const void *creator; /* a thread */
};
extern struct weft_ctx weft_ctxs[WEFT_CTXS_MAX];

/* The context behind a handle other than SHMEM_CTX_DEFAULT; NULL when there is none. */
static inline const struct weft_ctx *weft_ctx_find(shmem_ctx_t handle) {
    uintptr_t number = (uintptr_t)handle;
    const struct weft_ctx *ctx = &weft_ctxs[number % WEFT_CTXS_MAX];
    uintptr_t alive = atomic_load_explicit(&ctx->handle, memory_order_acquire);
    return alive == number && number != 0 ? ctx : NULL;
}

/* What tells the calling thread from others. No call, which would have its caller save registers.
 */
static inline const void *weft_thread_self(void) {
    return __builtin_thread_pointer();
}

/* Whether the calling thread may use the context. */
static inline bool weft_ctx_allowed(const struct weft_ctx *ctx) {
    return !(ctx->options & SHMEM_CTX_PRIVATE) || ctx->creator == weft_thread_self();
}

/* The world number of the context's PE; negative where there is no such context or PE, except that
 * the default context hands `pe` through, for the access itself to check. */
static inline int weft_ctx_world_pe(shmem_ctx_t handle, int pe) {
    if (handle == SHMEM_CTX_DEFAULT)
        return pe;
    const struct weft_ctx *ctx = weft_ctx_find(handle);
    if (__builtin_expect(!ctx || (unsigned)pe >= (unsigned)ctx->npes, 0))
        return -1;
    return weft_member_pe(&ctx->member_list, pe);
}

/* 0; -EINVAL for a team or option that does not exist, -ENOSPC when all contexts are in use.
 * *ctx is SHMEM_CTX_INVALID then. */
int weft_ctx_create(shmem_team_t team, long options, shmem_ctx_t *ctx);

/* Completes the context's operations and ends it; -EINVAL when there is no such context. */
int weft_ctx_destroy(shmem_ctx_t ctx);

/* Ends every context of the team, or of all teams for SHMEM_TEAM_INVALID. */
void weft_ctx_destroy_all(shmem_team_t team);

#endif
