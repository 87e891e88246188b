/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll/packet.h"

void weft_packets_renew(struct weft_team *team) {
    uint32_t last = team->packet_epoch - 1;
    weft_sync_barrier(team);
    for (int i = 0; i < WEFT_PACKETS; i++)
        weft_word_set(&team->words->packets[i].posted, last);
    weft_word_set(&team->words->packets_read, last);
    team->packets_read = last;
    weft_sync_barrier(team);
}

/* Called only while nothing but broadcasts has followed `epoch`, or by the broadcast of `epoch`
 * itself, so each member's word reaches it. */
void weft_packets_wait_read(struct weft_team *team, uint32_t epoch) {
    uint32_t least = team->packet_epoch;
    for (int member = 0; member < team->npes; member++) {
        if (member == team->my_pe)
            continue;
        struct weft_word *read = &weft_team_words_of(team, member)->packets_read;
        weft_word_wait(read, epoch, weft_team_world_pe(team, member));
        uint32_t theirs = atomic_load_explicit(&read->value, memory_order_acquire);
        if (!weft_epoch_reached(theirs, least))
            least = theirs;
    }
    team->packets_read = least;
}
