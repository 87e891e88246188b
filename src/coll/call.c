/* SPDX-License-Identifier: BSD-3-Clause */
/* The names of tensor calls. */
#include "coll/call.h"

static const char *const names[] = {
    [WEFT_CALL_ALL_REDUCE] = "weft_all_reduce",
    [WEFT_CALL_ALL_GATHER] = "weft_all_gather",
    [WEFT_CALL_REDUCE_SCATTER] = "weft_reduce_scatter",
    [WEFT_CALL_BROADCAST] = "weft_broadcast",
    [WEFT_CALL_ALL_TO_ALL] = "weft_all_to_all",
    [WEFT_CALL_ALL_TO_ALLV] = "weft_all_to_allv",
    [WEFT_CALL_ALL_GATHER_MATMUL] = "weft_all_gather_matmul",
    [WEFT_CALL_ALL_GATHER_SCALED_MATMUL] = "weft_all_gather_scaled_matmul",
    [WEFT_CALL_MATMUL_REDUCE_SCATTER] = "weft_matmul_reduce_scatter",
    [WEFT_CALL_SCALED_MATMUL_REDUCE_SCATTER] = "weft_scaled_matmul_reduce_scatter",
    [WEFT_CALL_MATMUL_ALL_REDUCE] = "weft_matmul_all_reduce",
    [WEFT_CALL_RESERVE] = "weft_reserve",
};

const char *weft_call_name(uint32_t call) {
    return call < sizeof names / sizeof *names ? names[call] : "a tensor call";
}
