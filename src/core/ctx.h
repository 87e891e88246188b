/* SPDX-License-Identifier: BSD-3-Clause */
/* Contexts: streams of operations that are ordered and completed separately, over a team's PEs.
 *
 * Near operations are complete when their call returns, so a context is just its options and its
 * team's member list, copied here so that one load reaches it. Messages to far PEs are not
 * distinguished by context, because every call would have to pass it on: a quiet of one context
 * completes the messages of all. A handle combines the entry's number and a generation; the entry
 * contains its live handle. Creating a context is local. */
#ifndef WEFT_CORE_CTX_H
#define WEFT_CORE_CTX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <shmem.h>
#include "job/member_list.h"

#define WEFT_CTXS_MAX 1024 /* a power of two */

struct weft_ctx {
    _Atomic(uintptr_t) handle;           /* 0 if the entry is free; written last, cleared first */
    struct weft_member_list member_list; /* of the team */
    int npes;
    uint32_t generation; /* of the last handle */
    long options;
    shmem_team_t team;
    const void *creator; /* the thread that created it */
};
extern struct weft_ctx weft_ctxs[WEFT_CTXS_MAX];

/* Returns the context of a handle other than SHMEM_CTX_DEFAULT, or NULL if it is not alive. */
static inline const struct weft_ctx *weft_ctx_find(shmem_ctx_t handle) {
    uintptr_t number = (uintptr_t)handle;
    const struct weft_ctx *ctx = &weft_ctxs[number % WEFT_CTXS_MAX];
    uintptr_t alive = atomic_load_explicit(&ctx->handle, memory_order_acquire);
    return alive == number && number != 0 ? ctx : NULL;
}

/* Returns an address that identifies the calling thread. It takes no function call, for which
 * callers would have to save registers. */
static inline const void *weft_thread_self(void) {
    return __builtin_thread_pointer();
}

/* Returns whether the calling thread may use the context. */
static inline bool weft_ctx_allowed(const struct weft_ctx *ctx) {
    return !(ctx->options & SHMEM_CTX_PRIVATE) || ctx->creator == weft_thread_self();
}

/* Returns the world number of the context's PE, or a negative number if there is no such context or
 * PE. For the default context it returns `pe` unchecked, since the access checks it. */
static inline int weft_ctx_world_pe(shmem_ctx_t handle, int pe) {
    if (handle == SHMEM_CTX_DEFAULT)
        return pe;
    const struct weft_ctx *ctx = weft_ctx_find(handle);
    if (__builtin_expect(!ctx || (unsigned)pe >= (unsigned)ctx->npes, 0))
        return -1;
    return weft_member_pe(&ctx->member_list, pe);
}

/* Creates a context. Returns 0; -EINVAL for an invalid team or unknown option; -ENOSPC if all
 * contexts are in use. On failure *ctx is SHMEM_CTX_INVALID. */
int weft_ctx_create(shmem_team_t team, long options, shmem_ctx_t *ctx);

/* Destroys a context, and completes its near stores. The caller has completed all other operations
 * (weft_dispatch_quiet). Returns 0, or -EINVAL if there is no such context. */
int weft_ctx_destroy(shmem_ctx_t ctx);

/* Destroys all contexts of the team, or of all teams if `team` is SHMEM_TEAM_INVALID. */
void weft_ctx_destroy_all(shmem_team_t team);

#endif
