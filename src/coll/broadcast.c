/* SPDX-License-Identifier: BSD-3-Clause */
/* Broadcast. In a team without far members, the other members wait only for the root. A packet
 * carries the payload or, if that is large, only announces that the root has entered; then the root
 * waits until all members have read its source. */
#include "coll/choice.h"
#include "coll/collective.h"
#include "coll/hosts.h"

static void broadcast_packet(const struct weft_group *group, void *dest, const void *source,
                             size_t bytes, int root) {
    struct weft_team *team = group->team;
    bool inside = weft_choice_packet(WEFT_BROADCAST, bytes, group->npes), sends = group->me == root;
    struct weft_pieces piece = {bytes, 1, 0, 0, !inside && weft_stream_wanted(2 * bytes)};
    weft_packet_next(team);
    if (sends) {
        struct weft_packet *packet = weft_packet_mine(team);
        if (inside)
            weft_rma_copy(packet->payload, source, bytes);
        weft_packet_send(team);
    } else {
        const struct weft_packet *packet = weft_packet_from(team, root);
        source = inside ? packet->payload : weft_group_near(group, source, bytes, root);
    }
    if (dest != source)
        weft_pieces_copy(dest, source, &piece);
    if (sends && !inside)
        weft_packets_wait_read(team, team->packet_epoch);
    weft_packet_finish(team);
}

static void broadcast_far(const struct weft_group *group, void *dest, const void *source,
                          size_t bytes, int root, bool writes) {
    if (!group->team || bytes > weft_host_packets_broadcast_max(group->team)) {
        weft_hosts_broadcast(group, dest, source, bytes, root, writes);
        return;
    }
    const void *at = weft_host_packets_broadcast(group->team, source, bytes, root);
    if (dest != at)
        weft_rma_copy(dest, at, bytes);
}

void weft_group_broadcast(const struct weft_group *group, void *dest, const void *source,
                          size_t bytes, int root) {
    const struct weft_mover *mover = weft_mover_of(group, dest, source);
    if (!mover->in_packets || !group->team || group->npes == 1) {
        struct weft_plan plan = weft_plan_broadcast(bytes, root);
        bool writes =
            group->team || group->me != root; /* an active set's root does not write its dest */
        if (mover == &weft_mover_far)
            broadcast_far(group, dest, source, bytes, root, writes);
        else
            weft_plan_copy(group, mover, &plan, writes ? dest : (void *)source, source);
        return;
    }
    broadcast_packet(group, dest, source, bytes, root);
}
