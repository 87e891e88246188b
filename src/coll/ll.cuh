/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets: 8 bytes of data, and with each half of them the flag of the call, which is the low half
 * of its epoch. One instruction stores a packet; a receiver that finds the flag in both halves has
 * the data, however the bytes travelled. So neither side needs a fence, and no meeting closes a
 * call: of two slots, by the epoch's parity, one has been read when it is written again
 * (transport/gpu_channel.h). The field knows this as the LL protocol. */
#ifndef WEFT_COLL_LL_CUH
#define WEFT_COLL_LL_CUH

#include "transport/gpu_channel.cuh"

/* --- Packets --------------------------------------------------------------------------------- */

WEFT_DEVICE void weft_ll_put(char *packet, uint64_t data, uint32_t flag) {
    struct weft_quad quad = {(uint32_t)data, flag, (uint32_t)(data >> 32), flag};
    weft_st_relaxed_sys((struct weft_quad *)packet, quad);
}

/* Waits for the data; false when the kernel is to give up. */
WEFT_DEVICE bool weft_ll_get(uint64_t *data, const char *packet, uint32_t flag,
                             struct weft_gpu_abort abort) {
    struct weft_spin spin = {};
    struct weft_quad quad = weft_ld_relaxed_sys((const struct weft_quad *)packet);
    while (quad.b != flag || quad.d != flag) {
        if (!weft_spin(&spin, abort))
            return false;
        quad = weft_ld_relaxed_sys((const struct weft_quad *)packet);
    }
    *data = quad.a | (uint64_t)quad.c << 32;
    return true;
}

/* By all threads of a block that has received all of its packets of the call: in one call in 2^32
 * of each parity its inbox, of so many bytes, is zeroed. */
WEFT_DEVICE void weft_ll_end(char *inbox, uint32_t bytes, uint64_t epoch) {
    uint32_t packet = sizeof(struct weft_quad);
    if (!weft_gpu_epoch_is_last(epoch))
        return;
    for (uint32_t at = weft_block_thread() * packet; at < bytes;
         at += weft_block_threads() * packet)
        weft_ll_put(inbox + at, 0, 0);
}

/* --- Units of arrays: 8 bytes, or the fewer that are left ---------------------------------------
 */

struct __attribute__((may_alias)) weft_ll_word {
    uint64_t value;
};

WEFT_DEVICE uint64_t weft_ll_load_word(const char *from) {
    return ((const struct weft_ll_word *)from)->value;
}

WEFT_DEVICE void weft_ll_store_word(char *to, uint64_t data) {
    ((struct weft_ll_word *)to)->value = data;
}

/* At any address. */
WEFT_DEVICE uint64_t weft_ll_load_bytes(const char *from, uint32_t bytes) {
    uint64_t data = 0;
    WEFT_ROLLED
    for (uint32_t k = 0; k < sizeof data && k < bytes; k++)
        data |= (uint64_t)(uint8_t)from[k] << 8 * k;
    return data;
}

WEFT_DEVICE void weft_ll_store_bytes(char *to, uint32_t bytes, uint64_t data) {
    WEFT_ROLLED
    for (uint32_t k = 0; k < sizeof data && k < bytes; k++)
        to[k] = (char)(data >> 8 * k);
}

#endif
