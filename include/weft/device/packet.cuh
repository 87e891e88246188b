/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets: 8 bytes of data, and with each half of them the flag of the call, which is the low half
 * of its epoch. One instruction stores a packet; a receiver that finds the flag in both halves has
 * the data, however the bytes travelled. So neither side needs a fence, and no kind closes a
 * call: of two slots, by the epoch's parity, one has been read when it is written again. The field
 * knows this as the LL protocol.
 *
 * Two slots are enough where everybody hears of everybody: in every epoch each member sends at
 * least one packet to each other one on the channel. Who has received them all knows that all have
 * begun the epoch, and so have done with the slot of the one before. */
#ifndef WEFT_DEVICE_PACKET_CUH
#define WEFT_DEVICE_PACKET_CUH

#include "weft/device/check.cuh"
#include "weft/device/group.cuh"
#include "weft/device/spin.cuh"

/* --- One packet ----------------------------------------------------------------------------------
 */

WEFT_DEVICE void weft_packet_put(char *packet, uint64_t data, uint32_t flag) {
    struct weft_quad quad = {(uint32_t)data, flag, (uint32_t)(data >> 32), flag};
    weft_st_relaxed_sys_quad((struct weft_quad *)packet, quad);
}

/* Whether a packet of the call has come; then its data is in *data. */
WEFT_DEVICE int weft_packet_look(uint64_t *data, const char *packet, uint32_t flag) {
    struct weft_quad quad = weft_ld_relaxed_sys_quad((const struct weft_quad *)packet);
    if (quad.b != flag || quad.d != flag)
        return 0;
    *data = quad.a | (uint64_t)quad.c << 32;
    return 1;
}

/* Waits for it; 0 when the kernel is to give up. */
WEFT_DEVICE int weft_packet_get(uint64_t *data, const char *packet, uint32_t flag,
                                struct weft_gpu_abort abort) {
    struct weft_spin spin = {0, 0, 0, 0};
    while (!weft_packet_look(data, packet, flag))
        if (!weft_spin(&spin, abort))
            return 0;
    return 1;
}

/* By threads that have received all of their packets of the call: in one call in 2^32 of each
 * parity the inbox, of so many bytes, is zeroed. The end of the kernel, or a fence and a sync,
 * stand between that and the next call. */
WEFT_DEVICE void weft_packets_end(char *inbox, size_t bytes, uint64_t epoch,
                                  struct weft_thread_group group) {
    const uint32_t packet = sizeof(struct weft_quad);
    if (!weft_gpu_epoch_is_last(epoch))
        return;
    for (size_t at = (size_t)group.id * packet; at < bytes; at += (size_t)group.count * packet)
        weft_packet_put(inbox + at, 0, 0);
}

/* --- The interface -------------------------------------------------------------------------------
 */

/* By all threads of the channel's block. begin syncs and gives the epoch of the next call. In each
 * call every thread sends all it owes before it receives, and every member sends at least one
 * packet to every other one. end syncs, behind all that the threads receive in the call, and counts
 * it. A kernel of several calls may take the later epochs by next, which needs no load, but ends
 * each. */
WEFT_DEVICE uint64_t weft_ll_epoch_begin(const weft_device_team *t, uint32_t channel) {
    WEFT_CHECK_CHANNEL(t, channel);
    weft_block_sync(); /* a call before this one has been counted */
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
        weft_fence_sys(); /* the zeros come before what this member sends in the next call */
        weft_block_sync();
    }
    if (weft_scope_first(WEFT_SCOPE_b))
        weft_st_relaxed_sys_u64(&weft_device_channel_of(t, channel, t->me)->packets, epoch);
}

/* Sends 8 bytes to member m, another one, as this member's packet number `unit` of the call, which
 * is less than t->slot_bytes / 16. By any thread, once a unit and call. */
WEFT_DEVICE void weft_ll_send(const weft_device_team *t, uint32_t channel, uint32_t unit,
                              uint64_t data, uint64_t epoch, int m) {
    WEFT_CHECK_CHANNEL(t, channel);
    WEFT_CHECK_MEMBER(t, m);
    WEFT_CHECK_UNIT(t, unit);
    char *slot = weft_device_slot(t, channel, epoch & 1, t->me, m);
    weft_packet_put(slot + (size_t)unit * sizeof(struct weft_quad), data, (uint32_t)epoch);
}

/* The same to all others, the next one first. */
WEFT_DEVICE void weft_ll_bcast(const weft_device_team *t, uint32_t channel, uint32_t unit,
                               uint64_t data, uint64_t epoch) {
    WEFT_ROLLED
    for (int d = 1; d < t->n; d++)
        weft_ll_send(t, channel, unit, data, epoch, weft_gpu_member_after(t->me, t->n, d));
}

/* Waits for packet number `unit` of member `source`, another one; by any thread, and by several.
 * 1: *data is set. 0: the job is over. */
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
