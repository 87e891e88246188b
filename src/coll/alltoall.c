/* SPDX-License-Identifier: BSD-3-Clause */
/* alltoall and alltoalls: everybody copies its blocks from everybody. */
#include "coll/choice.h"
#include "coll/collective.h"
#include "coll/packet.h"
#include "coll/plan.h"

/* A packet holds all blocks of its sender, one behind the other and without gaps. */
static void alltoall_packets(const struct weft_group *group, void *dest, const void *source,
                             const struct weft_plan *plan) {
    struct weft_team *team = group->team;
    size_t block = plan->bytes * plan->npieces;
    weft_packet_next(team, group->call);
    unsigned char *payload = weft_packet_mine(team, group->call)->payload;
    for (int member = 0; member < group->npes; member++) {
        struct weft_transfer out = weft_plan_transfer(plan, dest, source, 0, member);
        out.dest = payload + (size_t)member * block;
        out.dest_piece = (ptrdiff_t)plan->bytes;
        if (member != group->me)
            weft_transfer_copy(&out);
    }
    weft_packet_send(team);
    struct weft_transfer own = weft_plan_transfer(plan, dest, source, group->me, group->me);
    weft_transfer_copy(&own);
    for (int distance = 1; distance < group->npes; distance++) {
        int member = weft_group_member(group, distance);
        struct weft_transfer in = weft_plan_transfer(plan, dest, source, member, group->me);
        in.source =
            weft_packet_from(team, member, group->call)->payload + (size_t)group->me * block;
        in.source_piece = (ptrdiff_t)plan->bytes;
        weft_transfer_copy(&in);
    }
    weft_packets_finish_exchange(team);
}

static void alltoall(const struct weft_group *group, void *dest, const void *source,
                     const struct weft_plan *plan) {
    const struct weft_mover *mover = weft_mover_of(dest, source);
    size_t all = plan->bytes * plan->npieces * (size_t)group->npes;
    if (weft_choice_small(group, mover, WEFT_ALLTOALL, all))
        alltoall_packets(group, dest, source, plan);
    else
        weft_plan_copy(group, mover, plan, dest, source);
}

void weft_group_alltoall(const struct weft_group *group, void *dest, const void *source,
                         size_t bytes) {
    struct weft_plan plan = weft_plan_alltoall(bytes);
    alltoall(group, dest, source, &plan);
}

void weft_group_alltoalls(const struct weft_group *group, void *dest, const void *source,
                          const struct weft_blocks_shape *shape) {
    struct weft_plan plan = weft_plan_alltoalls(shape);
    alltoall(group, dest, source, &plan);
}
