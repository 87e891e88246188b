/* SPDX-License-Identifier: BSD-3-Clause */
/* alltoall and alltoalls: every member copies its blocks from every member. */
#include "coll/choice.h"
#include "coll/collective.h"
#include "coll/hosts.h"

/* A packet holds the blocks of its sender, contiguous and in the order of the members; the place of
 * its own block is not used. */
static void alltoall_packets(const struct weft_group *group, void *dest, const void *source,
                             const struct weft_plan *plan) {
    struct weft_team *team = group->team;
    const struct weft_pieces *pieces = &plan->pieces;
    ptrdiff_t piece = (ptrdiff_t)pieces->bytes, block = piece * (ptrdiff_t)pieces->count;
    struct weft_pieces in = {pieces->bytes, pieces->count, piece, pieces->source_step, false};
    struct weft_pieces out = {pieces->bytes, pieces->count, pieces->dest_step, piece, false};
    weft_packet_next(team);
    unsigned char *payload = weft_packet_mine(team)->payload;
    for (int member = 0; member < group->npes; member++)
        if (member != group->me)
            weft_pieces_copy(payload + member * block, weft_plan_source(plan, source, member), &in);
    weft_packet_send(team);
    weft_pieces_copy(weft_plan_dest(plan, dest, group->me),
                     weft_plan_source(plan, source, group->me), pieces);
    for (int distance = 1; distance < group->npes; distance++) {
        int member = weft_group_member(group, distance);
        const struct weft_packet *packet = weft_packet_from(team, member);
        weft_pieces_copy(weft_plan_dest(plan, dest, member), packet->payload + group->me * block,
                         &out);
    }
    weft_packets_finish_exchange(team);
}

/* In a packet the blocks are in the order of the receivers' places (core/levels.h). */
static void alltoall_host_packets(const struct weft_group *group, void *dest, const void *source,
                                  const struct weft_plan *plan) {
    struct weft_team *team = group->team;
    const struct weft_levels *levels = team->levels;
    const struct weft_pieces *pieces = &plan->pieces;
    ptrdiff_t piece = (ptrdiff_t)pieces->bytes, block = piece * (ptrdiff_t)pieces->count;
    struct weft_pieces in = {pieces->bytes, pieces->count, piece, pieces->source_step, false};
    struct weft_pieces out = {pieces->bytes, pieces->count, pieces->dest_step, piece, false};
    struct weft_packet_layout layout = {.block = (size_t)block};
    unsigned char *payload = weft_host_packets_next(team);
    for (int member = 0; member < group->npes; member++)
        weft_pieces_copy(payload + levels->places[member] * block,
                         weft_plan_source(plan, source, member), &in);
    weft_host_packets_send(team, layout);
    for (int distance = 0; distance < group->npes; distance++) {
        int member = weft_group_member(group, distance);
        const unsigned char *packets = weft_host_packets_from(team, layout, member);
        weft_pieces_copy(weft_plan_dest(plan, dest, member),
                         packets + weft_levels_rank(levels, group->me) * block, &out);
    }
    weft_host_packets_finish(team);
}

static void move_far_blocks(const struct weft_group *group, void *dest, const void *source,
                            const struct weft_plan *plan) {
    struct weft_packet_layout layout = {.block = plan->pieces.bytes * plan->pieces.count};
    if (weft_choice_far(group, &weft_mover_far, layout))
        alltoall_host_packets(group, dest, source, plan);
    else
        weft_hosts_alltoall(group, plan, dest, source);
}

static void move_blocks(const struct weft_group *group, void *dest, const void *source,
                        struct weft_plan *plan) {
    const struct weft_mover *mover = weft_mover_of(group, dest, source);
    size_t all = plan->pieces.bytes * plan->pieces.count * (size_t)group->npes;
    if (weft_choice_small(group, mover, WEFT_ALLTOALL, all))
        alltoall_packets(group, dest, source, plan);
    else if (mover == &weft_mover_far)
        move_far_blocks(group, dest, source, plan);
    else
        weft_plan_copy(group, mover, plan, dest, source);
}

void weft_group_alltoall(const struct weft_group *group, void *dest, const void *source,
                         size_t bytes) {
    struct weft_plan plan = weft_plan_alltoall(bytes);
    move_blocks(group, dest, source, &plan);
}

void weft_group_alltoalls(const struct weft_group *group, void *dest, const void *source,
                          const struct weft_blocks_shape *shape) {
    struct weft_plan plan = weft_plan_alltoalls(shape);
    move_blocks(group, dest, source, &plan);
}
