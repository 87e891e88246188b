/* SPDX-License-Identifier: BSD-3-Clause */
/* Each member pushes its blocks to where they belong, if that is far, to the next member first, and
 * copies those of near ones. */
#include "coll/hosts.h"

static void push_block(const struct weft_crossing *crossing, const struct weft_plan *plan,
                       void *dest, const void *source, int member) {
    const struct weft_group *group = crossing->group;
    const struct weft_pieces *pieces = &plan->pieces;
    void *to = weft_plan_dest(plan, dest, group->me);
    const void *from = weft_plan_source(plan, source, member);
    if (pieces->count == 1) {
        weft_crossing_push(crossing, WEFT_PUSH_ACROSS, to, from, pieces->bytes, 1, member);
        return;
    }
    struct weft_strided shape = weft_pieces_shape(pieces);
    if (weft_far_operations.put_strided(to, from, &shape, weft_group_pe(group, member)) != 0)
        weft_group_lacks(group, to, pieces->bytes, member);
    weft_crossing_push(crossing, WEFT_PUSH_ACROSS, NULL, NULL, 0, 1, member);
}

static bool is_near(const struct weft_crossing *crossing, int member) {
    return crossing->levels->hosts[member] == crossing->levels->leader;
}

void weft_hosts_alltoall(const struct weft_group *group, const struct weft_plan *plan, void *dest,
                         const void *source) {
    struct weft_crossing crossing = weft_crossing_of(group);
    uint32_t all = (uint32_t)(group->npes - crossing.levels->near);
    weft_crossing_meet(&crossing, 1);
    for (int distance = 1; distance < group->npes; distance++) {
        int member = weft_group_member(group, distance);
        if (!is_near(&crossing, member))
            push_block(&crossing, plan, dest, source, member);
    }
    for (int distance = 0; distance < group->npes; distance++) {
        int member = weft_group_member(group, distance);
        void *to = weft_plan_dest(plan, dest, member);
        const void *from = weft_plan_source(plan, source, group->me);
        if (is_near(&crossing, member) && (member != group->me || to != from))
            weft_mover_near.pull(group, to, from, &plan->pieces, member);
    }
    for (int distance = 1; distance < group->npes; distance++) {
        int member = weft_group_member(group, distance);
        if (!is_near(&crossing, member))
            weft_crossing_await(&crossing, WEFT_PUSH_ACROSS, member, 1, all, group->me);
    }
    weft_crossing_end(&crossing);
}
