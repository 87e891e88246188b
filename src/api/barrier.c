/* SPDX-License-Identifier: BSD-3-Clause */
/* Barriers: quiet and sync of the job, sync of a team. */
#include <errno.h>
#include "core/order.h"
#include "core/sync.h"
#include "core/team.h"
#include "api/define.h"

API(void, barrier_all, (void)) {
    weft_check_running(__func__);
    weft_quiet();
    weft_sync_barrier(weft_team_find(SHMEM_TEAM_WORLD), __func__);
}

API(void, sync_all, (void)) {
    weft_check_running(__func__);
    weft_sync_barrier(weft_team_find(SHMEM_TEAM_WORLD), __func__);
}

API(int, team_sync, (shmem_team_t team)) {
    weft_check_running(__func__);
    struct weft_team *members = weft_team_find(team);
    if (!members)
        return -EINVAL;
    weft_sync_barrier(members, __func__);
    return 0;
}
