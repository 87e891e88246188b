/* SPDX-License-Identifier: BSD-3-Clause */
/* The numbers of tensor calls, which members compare to see that they are in the same call. */
#ifndef WEFT_COLL_CALL_H
#define WEFT_COLL_CALL_H

#include <stdint.h>

enum weft_call {
    WEFT_CALL_ALL_REDUCE,
    WEFT_CALL_ALL_REDUCE_RMS_NORM,
    WEFT_CALL_ALL_GATHER,
    WEFT_CALL_REDUCE_SCATTER,
    WEFT_CALL_BROADCAST,
    WEFT_CALL_ALL_TO_ALL,
    WEFT_CALL_ALL_TO_ALLV,
    WEFT_CALL_ALL_TO_ALLV_ON_DEVICE,
    WEFT_CALL_KV_SHUFFLE,
    WEFT_CALL_ALL_GATHER_MATMUL,
    WEFT_CALL_ALL_GATHER_SCALED_MATMUL,
    WEFT_CALL_MATMUL_REDUCE_SCATTER,
    WEFT_CALL_SCALED_MATMUL_REDUCE_SCATTER,
    WEFT_CALL_MATMUL_ALL_REDUCE,
    WEFT_CALL_MOE_CREATE,
    WEFT_CALL_MOE_DESTROY,
    WEFT_CALL_MOE_DISPATCH,
    WEFT_CALL_MOE_COMBINE,
    WEFT_CALL_RESERVE,
};

/* The public name of a call, and of the arguments that must be equal on all members. */
#define WEFT_OFFER_FACTS 5
struct weft_call_row {
    const char *name, *facts[WEFT_OFFER_FACTS];
};
extern const struct weft_call_row weft_calls[];

/* Returns the public name, or "a tensor call" for an unknown number. */
const char *weft_call_name(uint32_t call);

#endif
