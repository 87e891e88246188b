/* SPDX-License-Identifier: BSD-3-Clause */
/* Broadcast. In a team whose memory is near nobody but the root waits for anyone but the root, and
 * the root only before its source is the caller's again: packets carry the payload, or just say
 * that the root is there. */
#include "coll/choice.h"
#include "coll/collective.h"
#include "coll/packet.h"

static void copy_unless_same(void *dest, const void *source, size_t bytes, bool stream) {
    struct weft_pieces piece = {bytes, 1, 0, 0, stream};
    if (dest != source)
        weft_pieces_copy(dest, source, &piece);
}

static void broadcast_send(const struct weft_group *group, void *dest, const void *source,
                           size_t bytes, bool inside) {
    struct weft_team *team = group->team;
    struct weft_packet *packet = weft_packet_mine(team);
    if (inside)
        weft_rma_copy(packet->payload, source, bytes);
    weft_packet_send(team);
    copy_unless_same(dest, source, bytes, !inside && weft_stream_wanted(2 * bytes));
    if (!inside)
        weft_packets_wait_read(team, team->packet_epoch);
    weft_packet_finish(team);
}

static void broadcast_receive(const struct weft_group *group, void *dest, const void *source,
                              size_t bytes, int root, bool inside) {
    struct weft_team *team = group->team;
    const struct weft_packet *packet = weft_packet_from(team, root);
    const void *from = inside ? packet->payload : weft_group_near(group, source, bytes, root);
    copy_unless_same(dest, from, bytes, !inside && weft_stream_wanted(2 * bytes));
    weft_packet_finish(team);
}

void weft_group_broadcast(const struct weft_group *group, void *dest, const void *source,
                          size_t bytes, int root) {
    const struct weft_mover *mover = weft_mover_of(dest, source);
    if (!mover->in_packets || !group->team || group->npes == 1) {
        struct weft_plan plan = weft_plan_broadcast(bytes, root);
        bool writes = group->team || group->me != root; /* an active set's root does not */
        weft_plan_copy(group, mover, &plan, writes ? dest : (void *)source, source);
        return;
    }
    bool inside = weft_choice_packet(WEFT_BROADCAST, bytes, group->npes);
    weft_packet_next(group->team);
    if (group->me == root)
        broadcast_send(group, dest, source, bytes, inside);
    else
        broadcast_receive(group, dest, source, bytes, root, inside);
}
