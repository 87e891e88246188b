/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets of teams with far members. A member writes its own packet as in other teams, and near
 * members read it there. The first member of each host sends all packets of its host in one message
 * to the first member of each other host (through other hosts if there are many), into its receive
 * area (core/sync.h), where all members of that host read them:
 *
 *     host a: 0, 1       the receive area of 2        host b: 2, 3
 *     0 and 1 write      packets: | 0 | 1 |           3 reads 2's packet, and
 *     0 sends     ---->  words:   a has arrived       0's and 1's in 2's area
 *
 * A member that has read the packets of all members in an exchange knows that all have finished the
 * call before it. After a broadcast no member knows that, so before a packet of the ring that it
 * may still read is used again, all members meet in a barrier. */
#ifndef WEFT_COLL_HOST_PACKETS_H
#define WEFT_COLL_HOST_PACKETS_H

#include "coll/packet.h"

/* The part of each packet that is sent to a host: the whole packet, or a block for each member of
 * that host. The blocks are in the order of the members' places (core/levels.h). */
struct weft_packet_layout {
    size_t whole, block; /* bytes; one of them is 0 */
};

static inline size_t weft_packet_layout_bytes(const struct weft_team *team,
                                              struct weft_packet_layout layout) {
    return layout.whole + layout.block * (size_t)team->npes;
}

/* Returns whether packets of this layout fit: the same on all members. */
static inline bool weft_host_packets_hold(const struct weft_team *team,
                                          struct weft_packet_layout layout) {
    size_t landed = layout.whole + layout.block * (size_t)team->levels->most;
    return weft_packet_layout_bytes(team, layout) <= WEFT_PACKET_BYTES &&
           landed * (size_t)team->npes <= team->receive_bytes;
}

/* Opens the next epoch. Returns this member's payload, which may then be written. */
unsigned char *weft_host_packets_next(struct weft_team *team);

/* Sends this member's payload in an exchange. */
void weft_host_packets_send(struct weft_team *team, struct weft_packet_layout layout);

/* Returns a member's bytes for this host, once they have arrived; valid until the next epoch. */
const unsigned char *weft_host_packets_from(struct weft_team *team,
                                            struct weft_packet_layout layout, int member);

/* Finishes an exchange, after all packets have arrived. */
void weft_host_packets_finish(struct weft_team *team);

/* Broadcasts `bytes`, at most weft_host_packets_broadcast_max. Returns their address here, valid
 * until the next epoch. */
const void *weft_host_packets_broadcast(struct weft_team *team, const void *source, size_t bytes,
                                        int root);

static inline size_t weft_host_packets_broadcast_max(const struct weft_team *team) {
    return team->receive_bytes < WEFT_PACKET_BYTES ? team->receive_bytes : WEFT_PACKET_BYTES;
}

/* Makes an exchange of any team in one call: payloads[member] is the address of the member's
 * `bytes`; this member's own stay at `source`. With far members the bytes must fit into packets or
 * into a post. */
void weft_packets_gather(struct weft_team *team, const void *source, size_t bytes,
                         const void **payloads);

#endif
