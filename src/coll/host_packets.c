/* SPDX-License-Identifier: BSD-3-Clause */
/* The first member of a host sends the host's packets, not the last member to arrive: peers that
 * wait for the host can name it, and it does not depart before its messages have arrived. */
#include "coll/host_packets.h"
#include <string.h>
#include "core/rma.h"

/* Returns the first PE of a host, which is far. */
static int leader_pe(const struct weft_team *team, int host) {
    return weft_team_world_pe(team, team->levels->leaders[host]);
}

/* A word that is not set for 2^31 epochs would seem to be ahead (coll/packet.h). */
static void packets_renew(struct weft_team *team) {
    size_t n = (size_t)team->npes;
    weft_packets_renew(team);
    for (size_t i = n; i < (1 + WEFT_PACKETS) * n; i++)
        weft_word_set(&team->receive->words[i], team->packet_epoch - 1);
    weft_sync_barrier(team);
}

unsigned char *weft_host_packets_next(struct weft_team *team) {
    uint32_t epoch = ++team->packet_epoch;
    if (__builtin_expect(epoch % WEFT_PACKETS_RENEWED == 0, 0))
        packets_renew(team);
    if (!weft_epoch_reached(team->packets_read, epoch - WEFT_PACKETS)) {
        weft_sync_barrier(team);
        team->packets_read = epoch - 1;
    }
    return team->words->packets[epoch % WEFT_PACKETS].payload;
}

/* Return the offset in a packet of the bytes for a host, and their number. */
static size_t layout_begin(const struct weft_team *team, struct weft_packet_layout layout,
                           int host) {
    return layout.block * (size_t)team->levels->begins[host];
}
static size_t layout_to(const struct weft_team *team, struct weft_packet_layout layout, int host) {
    return layout.whole + layout.block * (size_t)weft_levels_count(team->levels, host);
}

/* Waits until the packets that `pe` of another host sends have arrived. Returns this host's receive
 * area. */
static const unsigned char *await_host(struct weft_team *team, int host, int pe) {
    const struct weft_levels *levels = team->levels;
    struct weft_receive *receive = weft_team_receive(team, levels->leaders[levels->leader]);
    weft_word_wait(weft_receive_packets(team, receive, host), team->packet_epoch, pe);
    return weft_receive_room(team, receive);
}

/* Sends `bytes` to the first member of a host, whose receive area is given by this member's own. */
static void send_to(struct weft_team *team, int host, size_t offset, const void *packets,
                    size_t bytes) {
    weft_far_put_word(weft_receive_room(team, team->receive) + offset, packets, bytes,
                      weft_receive_packets(team, team->receive, team->levels->leader),
                      team->packet_epoch, leader_pe(team, host));
}

/* Copies the packets of this host's members for a host to `to`, contiguous. Returns their bytes. */
static size_t gather_packets(struct weft_team *team, struct weft_packet_layout layout, int host,
                             unsigned char *to) {
    const struct weft_levels *levels = team->levels;
    size_t bytes = layout_to(team, layout, host), begin = layout_begin(team, layout, host);
    for (int i = 0; i < levels->near; i++) {
        int member = levels->members[levels->begins[levels->leader] + i];
        memcpy(to + (size_t)i * bytes, weft_packet_from(team, member)->payload + begin, bytes);
    }
    return (size_t)levels->near * bytes;
}

/* Sends to the next host first, so that not all hosts send to one host at once. */
static void send_to_each(struct weft_team *team, struct weft_packet_layout layout) {
    const struct weft_levels *levels = team->levels;
    unsigned char packets[WEFT_RECEIVE_BYTES];
    size_t first = (size_t)levels->begins[levels->leader];
    for (int distance = 1; distance < levels->nleaders; distance++) {
        int host = (levels->leader + distance) % levels->nleaders;
        size_t bytes = gather_packets(team, layout, host, packets);
        send_to(team, host, first * layout_to(team, layout, host), packets, bytes);
    }
}

/* Sending a message takes about as long as its transport, so with many hosts whole packets are
 * disseminated (Bruck's all-gather). Before round r, counted from 0, each host has the packets of
 * the 2^r hosts up to itself, and sends them to the host 2^r after it: at most two ranges, at both
 * ends of the area. */
enum { FEW_HOSTS = 5 };

static bool is_disseminated(const struct weft_team *team, struct weft_packet_layout layout) {
    return layout.block == 0 && team->levels->nleaders > FEW_HOSTS;
}

/* Returns the host that sends the packets of another host to this one. */
static int sender_of(const struct weft_team *team, struct weft_packet_layout layout, int host) {
    int n = team->levels->nleaders, distance = (team->levels->leader - host + n) % n, step = 1;
    while (2 * step <= distance)
        step *= 2;
    return is_disseminated(team, layout) ? (team->levels->leader - step + n) % n : host;
}

/* Sends the packets of `count` hosts up to this one. */
static void send_range(struct weft_team *team, size_t bytes, int count, int host) {
    const struct weft_levels *levels = team->levels;
    unsigned char *packets = weft_receive_room(team, team->receive);
    int first = levels->leader + 1 - count, end = levels->leader + 1, n = levels->nleaders;
    if (first < 0) {
        size_t offset = (size_t)levels->begins[first + n] * bytes;
        weft_far_put(packets + offset, packets + offset, (size_t)team->npes * bytes - offset,
                     leader_pe(team, host));
        first = 0;
    }
    size_t offset = (size_t)levels->begins[first] * bytes;
    send_to(team, host, offset, packets + offset, (size_t)levels->begins[end] * bytes - offset);
}

static void disseminate(struct weft_team *team, struct weft_packet_layout layout) {
    const struct weft_levels *levels = team->levels;
    int n = levels->nleaders;
    size_t own = (size_t)levels->begins[levels->leader] * layout.whole;
    gather_packets(team, layout, levels->leader, weft_receive_room(team, team->receive) + own);
    for (int distance = 1; distance < n; distance *= 2) {
        int from = (levels->leader - distance + n) % n;
        send_range(team, layout.whole, distance < n - distance ? distance : n - distance,
                   (levels->leader + distance) % n);
        await_host(team, from, leader_pe(team, from));
    }
}

void weft_host_packets_send(struct weft_team *team, struct weft_packet_layout layout) {
    const struct weft_levels *levels = team->levels;
    weft_packet_send(team);
    if (levels->leaders[levels->leader] == team->my_pe)
        (is_disseminated(team, layout) ? disseminate : send_to_each)(team, layout);
}

const unsigned char *weft_host_packets_from(struct weft_team *team,
                                            struct weft_packet_layout layout, int member) {
    const struct weft_levels *levels = team->levels;
    int host = levels->hosts[member], sender = sender_of(team, layout, host);
    if (host == levels->leader)
        return weft_packet_from(team, member)->payload + layout_begin(team, layout, host);
    return await_host(team, sender, leader_pe(team, sender)) +
           (size_t)levels->places[member] * layout_to(team, layout, levels->leader);
}

void weft_host_packets_finish(struct weft_team *team) {
    weft_packets_finish_exchange(team);
}

const void *weft_host_packets_broadcast(struct weft_team *team, const void *source, size_t bytes,
                                        int root) {
    const struct weft_levels *levels = team->levels;
    int host = levels->hosts[root];
    unsigned char *payload = weft_host_packets_next(team);
    if (root != team->my_pe)
        return host == levels->leader ? weft_packet_from(team, root)->payload
                                      : await_host(team, host, weft_team_world_pe(team, root));
    for (int distance = 1; distance < levels->nleaders; distance++)
        send_to(team, (host + distance) % levels->nleaders, 0, source, bytes);
    memcpy(payload, source, bytes);
    weft_packet_send(team);
    return source;
}

/* --- Exchanges in one call -------------------------------------------------------------------- */

static void gather_posts(struct weft_team *team, const void *source, size_t bytes,
                         const void **payloads) {
    weft_sync_post(team, source, bytes);
    payloads[team->my_pe] = source;
    for (int distance = 1; distance < team->npes; distance++) {
        int member = weft_team_member_after(team, distance);
        payloads[member] = weft_sync_peek(team, member);
    }
}

static void gather_far(struct weft_team *team, const void *source, size_t bytes,
                       const void **payloads) {
    struct weft_packet_layout layout = {.whole = bytes};
    if (!weft_host_packets_hold(team, layout)) {
        gather_posts(team, source, bytes, payloads);
        return;
    }
    memcpy(weft_host_packets_next(team), source, bytes);
    weft_host_packets_send(team, layout);
    payloads[team->my_pe] = source;
    for (int distance = 1; distance < team->npes; distance++) {
        int member = weft_team_member_after(team, distance);
        payloads[member] = weft_host_packets_from(team, layout, member);
    }
    weft_host_packets_finish(team);
}

void weft_packets_gather(struct weft_team *team, const void *source, size_t bytes,
                         const void **payloads) {
    if (__builtin_expect(team->far, 0)) {
        gather_far(team, source, bytes, payloads);
        return;
    }
    weft_packet_next(team);
    weft_rma_copy(weft_packet_mine(team)->payload, source, bytes);
    weft_packet_send(team);
    payloads[team->my_pe] = source;
    for (int distance = 1; distance < team->npes; distance++) {
        int member = weft_team_member_after(team, distance);
        payloads[member] = weft_packet_from(team, member)->payload;
    }
    weft_packets_finish_exchange(team);
}
