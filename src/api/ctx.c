/* SPDX-License-Identifier: BSD-3-Clause */
/* Communication contexts, and sessions on them. A session announces operations, so that an
 * implementation can delay and combine them. Between near PEs an operation is complete when its
 * call returns, so Weft checks a session's arguments and otherwise ignores it. */
#include <errno.h>
#include "job/made.h"
#include "core/dispatch.h"
#include "api/define.h"

static int create_ctx(shmem_team_t team, long options, shmem_ctx_t *ctx) {
    int error = weft_ctx_create(team, options, ctx);
    if (error == 0 && weft_checked())
        weft_made_keep(WEFT_MADE_CONTEXT, *ctx, 0);
    return error;
}

API(int, team_create_ctx, (shmem_team_t team, long options, shmem_ctx_t *ctx)) {
    weft_check_running(__func__);
    weft_check_local(__func__, "ctx", ctx, sizeof *ctx);
    return create_ctx(team, options, ctx);
}

API(int, ctx_create, (long options, shmem_ctx_t *ctx)) {
    weft_check_running(__func__);
    weft_check_local(__func__, "ctx", ctx, sizeof *ctx);
    return create_ctx(SHMEM_TEAM_WORLD, options, ctx);
}

API(int, ctx_get_team, (shmem_ctx_t ctx, shmem_team_t *team)) {
    weft_check_running(__func__);
    weft_check_local(__func__, "team", team, sizeof *team);
    const struct weft_ctx *known = weft_ctx_find(ctx);
    *team = ctx == SHMEM_CTX_DEFAULT ? SHMEM_TEAM_WORLD : known ? known->team : SHMEM_TEAM_INVALID;
    return *team == SHMEM_TEAM_INVALID ? -EINVAL : 0;
}

API(void, ctx_destroy, (shmem_ctx_t ctx)) {
    WEFT_IN_CALL(__func__);
    weft_check_running(__func__);
    weft_dispatch_quiet();
    if (ctx != SHMEM_CTX_INVALID && weft_ctx_destroy(ctx) != 0)
        weft_misuse_handle(__func__, "ctx", ctx, "a context that was created and not destroyed");
    if (weft_checked())
        weft_made_forget(WEFT_MADE_CONTEXT, ctx);
}

API(void, ctx_session_start,
    (shmem_ctx_t ctx, long options, const shmem_ctx_session_config_t *config, long config_mask)) {
    if (!weft_check_ctx(__func__, ctx))
        return;
    if (options & ~SHMEM_CTX_SESSION_BATCH)
        weft_misuse_constant(__func__, "options", options, "0 or SHMEM_CTX_SESSION_BATCH");
    if (config_mask & ~SHMEM_CTX_SESSION_TOTAL_OPS)
        weft_misuse_constant(__func__, "config_mask", config_mask,
                             "0 or SHMEM_CTX_SESSION_TOTAL_OPS");
    weft_check_local(__func__, "config", config, config_mask != 0);
}

API(void, ctx_session_stop, (shmem_ctx_t ctx)) {
    weft_check_ctx(__func__, ctx);
}
