/* SPDX-License-Identifier: BSD-3-Clause */
/* Communication contexts. */
#include <errno.h>
#include "api/define.h"

API(int, team_create_ctx, (shmem_team_t team, long options, shmem_ctx_t *ctx)) {
    weft_check_running(__func__);
    weft_check_local(__func__, "ctx", ctx, sizeof *ctx);
    return weft_ctx_create(team, options, ctx);
}

API(int, ctx_create, (long options, shmem_ctx_t *ctx)) {
    weft_check_running(__func__);
    weft_check_local(__func__, "ctx", ctx, sizeof *ctx);
    return weft_ctx_create(SHMEM_TEAM_WORLD, options, ctx);
}

API(int, ctx_get_team, (shmem_ctx_t ctx, shmem_team_t *team)) {
    weft_check_running(__func__);
    weft_check_local(__func__, "team", team, sizeof *team);
    const struct weft_ctx *known = weft_ctx_find(ctx);
    *team = ctx == SHMEM_CTX_DEFAULT ? SHMEM_TEAM_WORLD : known ? known->team : SHMEM_TEAM_INVALID;
    return *team == SHMEM_TEAM_INVALID ? -EINVAL : 0;
}

API(void, ctx_destroy, (shmem_ctx_t ctx)) {
    weft_check_running(__func__);
    if (ctx != SHMEM_CTX_INVALID && weft_ctx_destroy(ctx) != 0)
        weft_misuse_handle(__func__, "ctx", ctx, "a context that was created and not destroyed");
}
