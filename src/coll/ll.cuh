/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets: 8 bytes of data, and with each half of them the flag of the call, which is the low half
 * of its epoch. One instruction stores a packet; a receiver that finds the flag in both halves has
 * the data, however the bytes travelled. So neither side needs a fence, and no meeting closes a
 * call: of two slots, by the epoch's parity, one has been read when it is written again
 * (transport/gpu_channel.h). The field knows this as the LL protocol. */
#ifndef WEFT_COLL_LL_CUH
#define WEFT_COLL_LL_CUH

#include "transport/gpu_channel.cuh"

/* A block's slots of a call, and its flag. Where the slots lie but for the parity can be computed
 * before the epoch is there. */
struct weft_ll {
    char *out; /* what this member sends: the slot in the inbox of member 0 */
    ptrdiff_t out_step;
    const char *in; /* what it gets: the slot of source 0 in its own inbox */
    ptrdiff_t in_step;
    uint32_t flag;
};

WEFT_DEVICE struct weft_ll weft_ll_begin(const struct weft_gpu_channels *channels, uint32_t channel,
                                         uint64_t epoch) {
    char *out = weft_gpu_channel_slot(channels, 0, channel, 0, channels->me);
    char *in = weft_gpu_channel_slot(channels, channels->me, channel, 0, 0);
    ptrdiff_t slot = channels->slot_units * (ptrdiff_t)sizeof(struct weft_quad);
    ptrdiff_t half = epoch & 1 ? slot * channels->n : 0;
    return {out + half, channels->inbox.step, in + half, slot, (uint32_t)epoch};
}

WEFT_DEVICE void weft_ll_put(const struct weft_ll *ll, int member, uint32_t unit, uint64_t data) {
    struct weft_quad packet = {(uint32_t)data, ll->flag, (uint32_t)(data >> 32), ll->flag};
    weft_st_relaxed_sys((struct weft_quad *)(ll->out + member * ll->out_step) + unit, packet);
}

/* Waits for what a member has sent; false when the kernel is to give up. */
WEFT_DEVICE bool weft_ll_receive(const struct weft_ll *ll, int source, uint32_t unit,
                                 uint64_t *data, struct weft_gpu_abort abort) {
    const struct weft_quad *at = (const struct weft_quad *)(ll->in + source * ll->in_step) + unit;
    struct weft_spin spin = {};
    struct weft_quad packet = weft_ld_relaxed_sys(at);
    while (packet.b != ll->flag || packet.d != ll->flag) {
        if (!weft_spin(&spin, abort))
            return false;
        packet = weft_ld_relaxed_sys(at);
    }
    *data = packet.a | (uint64_t)packet.c << 32;
    return true;
}

/* By all threads of a block that has received all of its packets of the call, before one of them
 * counts the epoch: in one call in 2^32 of each parity the inbox is zeroed. */
WEFT_DEVICE void weft_ll_end(const struct weft_ll *ll, const struct weft_gpu_channels *channels,
                             uint64_t epoch) {
    if (!weft_gpu_epoch_is_last(epoch))
        return;
    struct weft_quad empty = {};
    uint32_t units = (uint32_t)channels->n * channels->slot_units;
    for (uint32_t unit = weft_block_thread(); unit < units; unit += weft_block_threads())
        weft_st_relaxed_sys((struct weft_quad *)ll->in + unit, empty);
}

/* --- Units of arrays: 8 bytes, at any address, or the fewer that are left -----------------------
 */

struct __attribute__((may_alias)) weft_ll_word {
    uint64_t value;
};

WEFT_DEVICE bool weft_ll_is_word(const char *at, uint32_t bytes) {
    return bytes >= sizeof(uint64_t) && (uintptr_t)at % sizeof(uint64_t) == 0;
}

WEFT_DEVICE uint64_t weft_ll_load(const char *from, uint32_t bytes) {
    if (weft_ll_is_word(from, bytes))
        return ((const struct weft_ll_word *)from)->value;
    uint64_t data = 0;
    WEFT_UNROLL
    for (uint32_t k = 0; k < sizeof data; k++)
        if (k < bytes)
            data |= (uint64_t)(uint8_t)from[k] << 8 * k;
    return data;
}

WEFT_DEVICE void weft_ll_store(char *to, uint32_t bytes, uint64_t data) {
    if (weft_ll_is_word(to, bytes)) {
        ((struct weft_ll_word *)to)->value = data;
        return;
    }
    WEFT_UNROLL
    for (uint32_t k = 0; k < sizeof data; k++)
        if (k < bytes)
            to[k] = (char)(data >> 8 * k);
}

#endif
