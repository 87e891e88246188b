/* SPDX-License-Identifier: BSD-3-Clause */
/* Small payloads between the members of a team, in words of the team, which is near.
 *
 * Each member owns a ring of packets and writes none but its own. Every collective that uses them
 * has one epoch, which all members count alike, and packet `epoch % WEFT_PACKETS` of whoever sends:
 *
 *   exchange   all send, all wait for all: so behind it every member has finished the last epoch
 *   broadcast  one sends; all say in `packets_read` when they have finished, and nobody waits
 *
 * A packet may be written again when all have finished the epoch in which it was sent. The ring
 * lets a sender run ahead, so that it looks at the others' words only now and then. */
#ifndef WEFT_COLL_PACKET_H
#define WEFT_COLL_PACKET_H

#include "core/sync.h"

/* Opens the next epoch; every member does. A word that is not set for 2^31 epochs, because its
 * owner never sends, or never receives, would seem to be ahead: so all are set every 2^30. */
#define WEFT_PACKETS_RENEWED (UINT32_C(1) << 30)
void weft_packets_renew(struct weft_team *team);
static inline void weft_packet_next(struct weft_team *team) {
    if (__builtin_expect(++team->packet_epoch % WEFT_PACKETS_RENEWED == 0, 0))
        weft_packets_renew(team);
}

/* Waits until every member has finished `epoch`, in a broadcast or behind it. */
void weft_packets_wait_read(struct weft_team *team, uint32_t epoch);

/* This member's packet of the epoch, free to be written. */
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

/* A member's packet of the epoch, once it has been sent; valid until this member finishes. */
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

/* Finishes an exchange, once this member has seen everybody's packet. They stay valid until it
 * opens the next epoch. */
static inline void weft_packets_finish_exchange(struct weft_team *team) {
    team->packets_read = team->packet_epoch - 1;
}

#endif
