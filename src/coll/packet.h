/* SPDX-License-Identifier: BSD-3-Clause */
/* Small payloads between the members of a team, all of them near, in words of the team.
 *
 * Each member owns a ring of packets and writes only its own. Every collective that uses packets
 * has one epoch, which all members count in the same way, and uses packet `epoch % WEFT_PACKETS` of
 * each sender:
 *
 *   exchange   all send and wait for all: after it every member has finished the previous epoch
 *   broadcast  one sends; all announce in `packets_read` that they have finished, and nobody waits
 *
 * A packet may be written again when all members have finished the epoch in which it was sent. The
 * ring lets a sender run ahead, so it reads the others' words only now and then. */
#ifndef WEFT_COLL_PACKET_H
#define WEFT_COLL_PACKET_H

#include "core/sync.h"

/* Opens the next epoch; every member does. A word that is not set for 2^31 epochs, because its
 * owner never sends or never receives, would seem to be ahead: so all are set every 2^30 epochs. */
#define WEFT_PACKETS_RENEWED (UINT32_C(1) << 30)
void weft_packets_renew(struct weft_team *team);
static inline void weft_packet_next(struct weft_team *team) {
    if (__builtin_expect(++team->packet_epoch % WEFT_PACKETS_RENEWED == 0, 0))
        weft_packets_renew(team);
}

/* Waits until every member has finished `epoch`. Called in a broadcast or after it. */
void weft_packets_wait_read(struct weft_team *team, uint32_t epoch);

/* Returns this member's packet of the epoch, which may then be written. */
static inline struct weft_packet *weft_packet_mine(struct weft_team *team) {
    uint32_t before = team->packet_epoch - WEFT_PACKETS;
    if (__builtin_expect(!weft_epoch_reached(team->packets_read, before), 0))
        weft_packets_wait_read(team, before);
    return &team->words->packets[team->packet_epoch % WEFT_PACKETS];
}

static inline void weft_packet_send(struct weft_team *team) {
    weft_word_set(&team->words->packets[team->packet_epoch % WEFT_PACKETS].posted,
                  team->packet_epoch);
}

/* Returns a member's packet of the epoch, once it has been sent; valid until this member
 * finishes. */
static inline const struct weft_packet *weft_packet_from(struct weft_team *team, int member) {
    struct weft_packet *packet =
        &weft_team_words_of(team, member)->packets[team->packet_epoch % WEFT_PACKETS];
    weft_word_wait(&packet->posted, team->packet_epoch, weft_team_world_pe(team, member));
    return packet;
}

/* Finishes a broadcast. */
static inline void weft_packet_finish(struct weft_team *team) {
    weft_word_set(&team->words->packets_read, team->packet_epoch);
}

/* Finishes an exchange, after this member has read all packets. They stay valid until it opens the
 * next epoch. */
static inline void weft_packets_finish_exchange(struct weft_team *team) {
    team->packets_read = team->packet_epoch - 1;
}

#endif
