/* SPDX-License-Identifier: BSD-3-Clause */
/* Each member pushes its blocks for far members part by part, to the next member first, and copies
 * the blocks of near members. */
#include "coll/hosts.h"

enum { PART_BYTES = 60 << 10 }; /* of one message */

static void push_pieces(const struct weft_host_push *push, const struct weft_pieces *pieces,
                        void *to, const void *from, int member) {
    const struct weft_group *group = push->group;
    struct weft_strided shape = weft_pieces_shape(pieces);
    if (weft_far_operations.put_strided(to, from, &shape, weft_group_pe(group, member)) != 0)
        weft_group_lacks(group, to, pieces->bytes, member);
    weft_host_push_send(push, WEFT_PUSH_ACROSS, NULL, NULL, 0, 1, member);
}

/* Pushes the first part of every block, then the next part: with whole blocks the sender would wait
 * for one receiver at a time. */
static void push_blocks(const struct weft_host_push *push, const struct weft_plan *plan, void *dest,
                        const void *source) {
    const struct weft_group *group = push->group;
    size_t bytes = plan->pieces.bytes;
    char *to = weft_plan_dest(plan, dest, group->me);
    weft_group_near(group, to, bytes, group->me);
    for (size_t first = 0; first < bytes; first += PART_BYTES)
        for (int distance = 1; distance < group->npes; distance++) {
            int member = weft_group_member(group, distance);
            if (weft_host_push_is_near(push, member))
                continue;
            const char *from = weft_plan_source(plan, source, member);
            if (plan->pieces.count > 1)
                push_pieces(push, &plan->pieces, to, from, member);
            else if (bytes - first > PART_BYTES)
                weft_far_put(to + first, from + first, PART_BYTES, weft_group_pe(group, member));
            else
                weft_host_push_send(push, WEFT_PUSH_ACROSS, to + first, from + first, bytes - first,
                                    1, member);
        }
}

void weft_hosts_alltoall(const struct weft_group *group, const struct weft_plan *plan, void *dest,
                         const void *source) {
    struct weft_host_push push = weft_host_push_of(group);
    uint32_t all = (uint32_t)(group->npes - push.levels->near);
    weft_host_push_meet(&push, 1);
    push_blocks(&push, plan, dest, source);
    for (int distance = 0; distance < group->npes; distance++) {
        int member = weft_group_member(group, distance);
        void *to = weft_plan_dest(plan, dest, member);
        const void *from = weft_plan_source(plan, source, group->me);
        if (weft_host_push_is_near(&push, member) && (member != group->me || to != from))
            weft_mover_near.pull(group, to, from, &plan->pieces, member);
    }
    for (int distance = 1; distance < group->npes; distance++) {
        int member = weft_group_member(group, distance);
        if (!weft_host_push_is_near(&push, member))
            weft_host_push_await(&push, WEFT_PUSH_ACROSS, member, 1, all, group->me);
    }
    weft_host_push_end(&push);
}
