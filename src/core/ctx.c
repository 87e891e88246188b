/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of contexts. Changed under one lock, read without it. Entries 0 and 1 stay free: their
 * numbers are those of SHMEM_CTX_INVALID and SHMEM_CTX_DEFAULT. */
#include "core/ctx.h"
#include <errno.h>
#include <pthread.h>
#include "core/team.h"

enum { FIRST = 2 };
#define OPTIONS (SHMEM_CTX_SERIALIZED | SHMEM_CTX_PRIVATE | SHMEM_CTX_NOSTORE)

struct weft_ctx weft_ctxs[WEFT_CTXS_MAX];
static pthread_mutex_t changing = PTHREAD_MUTEX_INITIALIZER;

static struct weft_ctx *free_entry(void) {
    for (int i = FIRST; i < WEFT_CTXS_MAX; i++)
        if (atomic_load_explicit(&weft_ctxs[i].handle, memory_order_relaxed) == 0)
            return &weft_ctxs[i];
    return NULL;
}

static void close_entry(struct weft_ctx *ctx) {
    atomic_store_explicit(&ctx->handle, 0, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst); /* completes the context's near stores */
}

static int open_entry(const struct weft_team *members, shmem_team_t team, long options,
                      shmem_ctx_t *handle) {
    struct weft_ctx *ctx = free_entry();
    if (!ctx)
        return -ENOSPC;
    ctx->member_list = members->member_list;
    ctx->npes = members->npes;
    ctx->options = options;
    ctx->team = team;
    ctx->creator = weft_thread_self();
    /* Generations start at 1, so that no handle equals a predefined one. */
    ctx->generation = ctx->generation == UINT32_MAX ? 1 : ctx->generation + 1;
    uintptr_t number = (uintptr_t)ctx->generation * WEFT_CTXS_MAX + (uintptr_t)(ctx - weft_ctxs);
    atomic_store_explicit(&ctx->handle, number, memory_order_release);
    *handle = (shmem_ctx_t)number;
    return 0;
}

int weft_ctx_create(shmem_team_t team, long options, shmem_ctx_t *ctx) {
    *ctx = SHMEM_CTX_INVALID;
    const struct weft_team *members = weft_team_find(team);
    if (!members || (options & ~OPTIONS))
        return -EINVAL;
    pthread_mutex_lock(&changing);
    int error = open_entry(members, team, options, ctx);
    pthread_mutex_unlock(&changing);
    return error;
}

int weft_ctx_destroy(shmem_ctx_t handle) {
    pthread_mutex_lock(&changing);
    const struct weft_ctx *ctx = weft_ctx_find(handle);
    if (ctx)
        close_entry(&weft_ctxs[ctx - weft_ctxs]);
    pthread_mutex_unlock(&changing);
    return ctx ? 0 : -EINVAL;
}

void weft_ctx_destroy_all(shmem_team_t team) {
    pthread_mutex_lock(&changing);
    for (int i = FIRST; i < WEFT_CTXS_MAX; i++)
        if (team == SHMEM_TEAM_INVALID || weft_ctxs[i].team == team)
            close_entry(&weft_ctxs[i]);
    pthread_mutex_unlock(&changing);
}
