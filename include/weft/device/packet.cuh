/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets: 8 bytes of data, and with each half of them the flag of the call, which is the low half
 * of its epoch. One instruction stores a packet; a receiver that finds the flag in both halves has
 * the data, however the bytes travelled. So neither side needs a fence, and no meeting closes a
 * call: of two slots, by the epoch's parity, one has been read when it is written again. The field
 * knows this as the LL protocol.
 *
 * Two slots are enough where everybody hears of everybody: in every epoch each member sends at
 * least one packet to each other one on the channel. Who has received them all knows that all have
 * begun the epoch, and so have done with the slot of the one before. */
#ifndef WEFT_DEVICE_PACKET_CUH
#define WEFT_DEVICE_PACKET_CUH

#include "weft/device/spin.cuh"

/* --- One packet ----------------------------------------------------------------------------------
 */

WEFT_DEVICE void weft_packet_put(char *packet, uint64_t data, uint32_t flag) {
    struct weft_quad quad = {(uint32_t)data, flag, (uint32_t)(data >> 32), flag};
    weft_st_relaxed_sys_quad((struct weft_quad *)packet, quad);
}

/* Waits for the data; 0 when the kernel is to give up. */
WEFT_DEVICE int weft_packet_get(uint64_t *data, const char *packet, uint32_t flag,
                                struct weft_gpu_abort abort) {
    struct weft_spin spin = {0, 0, 0, 0};
    struct weft_quad quad = weft_ld_relaxed_sys_quad((const struct weft_quad *)packet);
    while (quad.b != flag || quad.d != flag) {
        if (!weft_spin(&spin, abort))
            return 0;
        quad = weft_ld_relaxed_sys_quad((const struct weft_quad *)packet);
    }
    *data = quad.a | (uint64_t)quad.c << 32;
    return 1;
}

/* By threads that have received all of their packets of the call, `id` of `count`: in one call in
 * 2^32 of each parity the inbox, of so many bytes, is zeroed. */
WEFT_DEVICE void weft_packets_end(char *inbox, uint32_t bytes, uint64_t epoch, uint32_t id,
                                  uint32_t count) {
    uint32_t packet = sizeof(struct weft_quad);
    if (!weft_gpu_epoch_is_last(epoch))
        return;
    for (uint32_t at = id * packet; at < bytes; at += count * packet)
        weft_packet_put(inbox + at, 0, 0);
    weft_fence_sys();
}

/* --- The interface -------------------------------------------------------------------------------
 */

/* By all threads of the channel's block, in every call: begin gives the call's epoch; end, behind
 * all that the threads receive in it, counts it, and syncs. */
WEFT_DEVICE uint64_t weft_ll_epoch_begin(const weft_device_team *t, uint32_t channel) {
    return weft_gpu_epoch_after(
        weft_ld_relaxed_sys_u64(&weft_device_channel_of(t, channel, t->me)->packets));
}
WEFT_DEVICE void weft_ll_epoch_end(const weft_device_team *t, uint32_t channel, uint64_t epoch) {
    uint32_t id = weft_block_rank(), count = weft_block_size();
    weft_block_sync();
    weft_packets_end(weft_device_slot(t, channel, epoch & 1, 0, t->me),
                     (uint32_t)t->n * t->slot_bytes, epoch, id, count);
    if (id == 0)
        weft_st_relaxed_sys_u64(&weft_device_channel_of(t, channel, t->me)->packets, epoch);
    weft_block_sync();
}

/* Sends 8 bytes to member m as number `unit` of this one's, below t->slot_bytes / 16. A thread
 * sends all it owes before it receives. */
WEFT_DEVICE void weft_ll_send(const weft_device_team *t, uint32_t channel, uint32_t unit,
                              uint64_t data, uint64_t epoch, int m) {
    char *slot = weft_device_slot(t, channel, epoch & 1, t->me, m);
    weft_packet_put(slot + (size_t)unit * sizeof(struct weft_quad), data, (uint32_t)epoch);
}

/* The same to all others, the next one first. */
WEFT_DEVICE void weft_ll_bcast(const weft_device_team *t, uint32_t channel, uint32_t unit,
                               uint64_t data, uint64_t epoch) {
    for (int d = 1; d < t->n; d++)
        weft_ll_send(t, channel, unit, data, epoch, weft_gpu_member_after(t->me, t->n, d));
}

/* Waits for unit number `unit` of member `source`, another one. 0: the job is over. */
WEFT_DEVICE int weft_ll_recv(const weft_device_team *t, uint32_t channel, uint32_t unit, int source,
                             uint64_t epoch, uint64_t *data) {
    const char *slot = weft_device_slot(t, channel, epoch & 1, source, t->me);
    return weft_packet_get(data, slot + (size_t)unit * sizeof(struct weft_quad), (uint32_t)epoch,
                           weft_abort_of(t));
}

#endif
