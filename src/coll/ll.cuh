/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets: 8 bytes of data, and with each half of them the flag of the call, which is the low
 * half of its epoch. One instruction stores a packet; a receiver that finds the flag in both
 * halves has the data, in whatever order the bytes arrived. So neither side needs a fence, and a
 * call does not end with a synchronisation: there are two slots, selected by the epoch's parity,
 * and a slot has been read before it is written again (transport/gpu_channel.h). This is the LL
 * protocol of NCCL. */
#ifndef WEFT_COLL_LL_CUH
#define WEFT_COLL_LL_CUH

#include "transport/gpu_channel.cuh"

/* --- Units of arrays: 8 bytes, or fewer at the end -------------------------------------------- */

struct __attribute__((may_alias)) weft_ll_word {
    uint64_t value;
};

WEFT_DEVICE uint64_t weft_ll_load_word(const char *from) {
    return ((const struct weft_ll_word *)from)->value;
}

WEFT_DEVICE void weft_ll_store_word(char *to, uint64_t data) {
    ((struct weft_ll_word *)to)->value = data;
}

/* Loads up to 8 bytes from any address. */
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
