/* SPDX-License-Identifier: BSD-3-Clause */
/* Barriers: quiet and sync of all PEs, sync of a team. */
#include "core/order.h"
#include "api/checked.h"
#include "api/define.h"

static void sync_members(struct weft_team *team) {
    if (weft_checked())
        weft_consistency_check(team, WEFT_NO_ARGUMENTS);
    weft_sync_barrier(team);
}

API(void, barrier_all, (void)) {
    WEFT_ENTER(__func__);
    weft_order_complete();
    sync_members(weft_team_find(SHMEM_TEAM_WORLD));
}

API(void, sync_all, (void)) {
    WEFT_ENTER(__func__);
    sync_members(weft_team_find(SHMEM_TEAM_WORLD));
}

API(int, team_sync, (shmem_team_t team)) {
    WEFT_ENTER(__func__);
    struct weft_team *members = weft_team_find(team);
    if (!members)
        return weft_team_refuse(team);
    sync_members(members);
    return 0;
}
