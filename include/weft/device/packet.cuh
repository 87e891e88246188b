/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets: 8 bytes of data, and with each half of them the flag of the call, which is the low half
 * of its epoch. One instruction stores a packet. A receiver that finds the flag in both halves has
 * the data, in whatever order the bytes travelled, so neither side needs a fence. This is known as
 * the LL protocol.
 *
 * There are two slots, selected by the epoch's parity. Two are enough because in every epoch each
 * member sends at least one packet to each other member on the channel: a member that has received
 * them all knows that all members have begun the epoch, and so no longer read the slot of the
 * previous one. */
#ifndef WEFT_DEVICE_PACKET_CUH
#define WEFT_DEVICE_PACKET_CUH

#include "weft/device/check.cuh"
#include "weft/device/group.cuh"
#include "weft/device/spin.cuh"

/* --- One packet ------------------------------------------------------------------------------- */

WEFT_DEVICE void weft_packet_put(char *packet, uint64_t data, uint32_t flag) {
    struct weft_quad quad = {(uint32_t)data, flag, (uint32_t)(data >> 32), flag};
    weft_st_relaxed_sys_quad((struct weft_quad *)packet, quad);
}

/* Returns 1 and stores the data if a packet of the call has arrived. */
WEFT_DEVICE int weft_packet_look(uint64_t *data, const char *packet, uint32_t flag) {
    struct weft_quad quad = weft_ld_relaxed_sys_quad((const struct weft_quad *)packet);
    if (quad.b != flag || quad.d != flag)
        return 0;
    *data = quad.a | (uint64_t)quad.c << 32;
    return 1;
}

/* Waits for a packet. Returns 0 if the kernel must give up. */
WEFT_DEVICE int weft_packet_get(uint64_t *data, const char *packet, uint32_t flag,
                                struct weft_gpu_abort abort) {
    struct weft_spin spin = {0, 0, 0, 0};
    while (!weft_packet_look(data, packet, flag))
        if (!weft_spin(&spin, abort))
            return 0;
    return 1;
}

/* Called by the threads that have received all their packets of the call. Zeroes the inbox of
 * `bytes` bytes in one call in 2^32 of each parity. The end of the kernel, or a fence and a sync,
 * must separate it from the next call. */
WEFT_DEVICE void weft_packets_end(char *inbox, size_t bytes, uint64_t epoch,
                                  struct weft_thread_group group) {
    const uint32_t packet = sizeof(struct weft_quad);
    if (!weft_gpu_epoch_is_last(epoch))
        return;
    for (size_t at = (size_t)group.id * packet; at < bytes; at += (size_t)group.count * packet)
        weft_packet_put(inbox + at, 0, 0);
}

/* --- The interface ---------------------------------------------------------------------------- */

/* Called by all threads of the channel's block. begin syncs and returns the epoch of the next call.
 * In each call every thread sends everything it owes before it receives, and every member sends at
 * least one packet to every other member. end syncs, after all receives of the threads, and counts
 * the call. A kernel with several calls may get the later epochs by next, which needs no load, but
 * must end each call. */
WEFT_DEVICE uint64_t weft_ll_epoch_begin(const weft_device_team *t, uint32_t channel) {
    WEFT_CHECK_CHANNEL(t, channel);
    weft_block_sync(); /* the previous call has been counted */
    uint64_t before = weft_ld_relaxed_sys_u64(&weft_device_channel_of(t, channel, t->me)->packets);
    uint32_t generation = weft_device_generation(t);
    WEFT_CHECK_LIVES(t, generation);
    weft_device_check_generation(t, generation);
    return weft_gpu_epoch_after(before);
}
WEFT_DEVICE uint64_t weft_ll_epoch_next(uint64_t epoch) {
    return weft_gpu_epoch_after(epoch);
}
WEFT_DEVICE void weft_ll_epoch_end(const weft_device_team *t, uint32_t channel, uint64_t epoch) {
    WEFT_CHECK_CHANNEL(t, channel);
    weft_block_sync();
    if (weft_gpu_epoch_is_last(epoch)) {
        weft_packets_end(weft_device_slot(t, channel, epoch & 1, 0, t->me),
                         (size_t)t->n * t->slot_bytes, epoch, weft_scope_group(WEFT_SCOPE_b));
        weft_fence_sys(); /* the zeros are ordered before this member's packets of the next call */
        weft_block_sync();
    }
    if (weft_scope_first(WEFT_SCOPE_b))
        weft_st_relaxed_sys_u64(&weft_device_channel_of(t, channel, t->me)->packets, epoch);
}

/* Sends 8 bytes to another member m, as this member's packet number `unit` of the call, less than
 * t->slot_bytes / 16. Any thread may send, once for each unit and call. */
WEFT_DEVICE void weft_ll_send(const weft_device_team *t, uint32_t channel, uint32_t unit,
                              uint64_t data, uint64_t epoch, int m) {
    WEFT_CHECK_CHANNEL(t, channel);
    WEFT_CHECK_MEMBER(t, m);
    WEFT_CHECK_UNIT(t, unit);
    char *slot = weft_device_slot(t, channel, epoch & 1, t->me, m);
    weft_packet_put(slot + (size_t)unit * sizeof(struct weft_quad), data, (uint32_t)epoch);
}

/* Sends a packet to all other members, the next one first. */
WEFT_DEVICE void weft_ll_bcast(const weft_device_team *t, uint32_t channel, uint32_t unit,
                               uint64_t data, uint64_t epoch) {
    WEFT_ROLLED
    for (int d = 1; d < t->n; d++)
        weft_ll_send(t, channel, unit, data, epoch, weft_gpu_member_after(t->me, t->n, d));
}

/* Waits for packet number `unit` of another member `source`; any thread may call it, and several
 * may. Returns 1 and sets *data, or returns 0 if the job is over. */
WEFT_DEVICE int weft_ll_recv(const weft_device_team *t, uint32_t channel, uint32_t unit, int source,
                             uint64_t epoch, uint64_t *data) {
    WEFT_CHECK_CHANNEL(t, channel);
    WEFT_CHECK_MEMBER(t, source);
    WEFT_CHECK_UNIT(t, unit);
    WEFT_CHECK_WAIT(check);
    struct weft_spin spin = {0, 0, 0, 0};
    struct weft_gpu_abort abort = weft_abort_of(t);
    const char *slot = weft_device_slot(t, channel, epoch & 1, source, t->me);
    while (!weft_packet_look(data, slot + (size_t)unit * sizeof(struct weft_quad), (uint32_t)epoch))
        if (!weft_spin(&spin, abort) ||
            !WEFT_CHECK_TURN(check, t, __func__, "packet %u of member %d on channel %u, epoch %llu",
                             unit, source, channel, (unsigned long long)epoch))
            return 0;
    return 1;
}

#endif
