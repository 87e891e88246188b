/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll/group.h"
#include <string.h>
#include "core/team.h"

/* After a barrier all earlier collectives of the team are over, and their packets have been
 * read. */
void weft_group_sync_team(const struct weft_group *group) {
    weft_sync_barrier(group->team);
    group->team->packets_read = group->team->packet_epoch;
}

void weft_group_lacks(const struct weft_group *group, const void *p, size_t bytes, int member) {
    weft_job_panic("PE %d has no symmetric object of %zu bytes at %p: pass the same object on all "
                   "PEs, at least as large as the data of the call",
                   weft_group_pe(group, member), bytes, p);
}

/* As `share` of an active set. */
static void share_in_team(const struct weft_group *group, size_t mine, size_t *sizes) {
    weft_sync_post(group->team, &mine, sizeof mine);
    for (int member = 0; member < group->npes; member++)
        memcpy(&sizes[member], weft_sync_peek(group->team, member), sizeof mine);
}

size_t weft_group_sum(const struct weft_group *group, size_t mine) {
    size_t sum = 0, sizes[group->npes];
    (group->team ? share_in_team : group->set->share)(group, mine, sizes);
    for (int member = 0; member < group->npes; member++)
        sum += sizes[member];
    return sum;
}

/* Returns the address of a near member's copy, or NULL if [p, p + bytes) is not in this member's
 * workspace. */
static void *near_in_workspace(const struct weft_team *team, const void *p, size_t bytes,
                               int member) {
    size_t offset = (size_t)((const char *)p - (char *)weft_team_workspace_of(team, team->my_pe));
    if (offset > team->workspace_committed || bytes > team->workspace_committed - offset)
        return NULL;
    return (char *)weft_team_workspace_of(team, member) + offset;
}

void *weft_group_near(const struct weft_group *group, const void *p, size_t bytes, int member) {
    void *near = weft_near(p, bytes, weft_group_pe(group, member));
    if (__builtin_expect(!near, 0) && group->team)
        near = near_in_workspace(group->team, p, bytes, member);
    if (__builtin_expect(!near, 0))
        weft_group_lacks(group, p, bytes, member);
    return near;
}
