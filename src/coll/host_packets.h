/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets of teams with far members. A member writes its own, as in other teams, and those near to
 * it read that; the first of each host sends all of its host's in one message to the first of each
 * other one, or by way of some where hosts are many, into its receive area (core/sync.h), where all
 * of that host read them:
 *
 *     host a: 0, 1       the receive area of 2        host b: 2, 3
 *     0 and 1 write      packets: | 0 | 1 |           3 reads 2's packet, and
 *     0 sends     ---->  words:   a has come          0's and 1's in that of 2
 *
 * Who has read everybody's packet of an exchange knows that all have finished the call before it.
 * Behind a broadcast nobody knows that, so before packets are used again all meet. */
#ifndef WEFT_COLL_HOST_PACKETS_H
#define WEFT_COLL_HOST_PACKETS_H

#include "coll/packet.h"

/* What of each packet goes to a host: the whole of it, or a block for each of its members, which
 * lie in the packet by their places (core/levels.h). */
struct weft_packet_layout {
    size_t whole, block; /* bytes; one of them is 0 */
};

static inline size_t weft_packet_layout_bytes(const struct weft_team *team,
                                              struct weft_packet_layout layout) {
    return layout.whole + layout.block * (size_t)team->npes;
}

/* Whether packets of so much have room: the same on all members. */
static inline bool weft_host_packets_hold(const struct weft_team *team,
                                          struct weft_packet_layout layout) {
    size_t landed = layout.whole + layout.block * (size_t)team->levels->most;
    return weft_packet_layout_bytes(team, layout) <= WEFT_PACKET_BYTES &&
           landed * (size_t)team->npes <= team->receive_bytes;
}

/* Opens the next epoch; this member's payload, free to be written. */
unsigned char *weft_host_packets_next(struct weft_team *team);

/* In an exchange: sends what has been written there. */
void weft_host_packets_send(struct weft_team *team, struct weft_packet_layout layout);

/* The layout of a member for this one's host, once it has come; until the next epoch. */
const unsigned char *weft_host_packets_from(struct weft_team *team,
                                            struct weft_packet_layout layout, int member);

/* When all have come. */
void weft_host_packets_finish(struct weft_team *team);

/* A broadcast of `bytes`, at most as below: where they are here, until the next epoch. */
const void *weft_host_packets_broadcast(struct weft_team *team, const void *source, size_t bytes,
                                        int root);

static inline size_t weft_host_packets_broadcast_max(const struct weft_team *team) {
    return team->receive_bytes < WEFT_PACKET_BYTES ? team->receive_bytes : WEFT_PACKET_BYTES;
}

/* An exchange of any team in one call: payloads[member] is where everybody's `bytes` are; the own
 * ones are still at source. With far members packets have to hold them, or a post. */
void weft_packets_gather(struct weft_team *team, const void *source, size_t bytes,
                         const void **payloads);

#endif
