/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll/call.h"
#include <stddef.h>

const struct weft_call_row weft_calls[] = {
    [WEFT_CALL_ALL_REDUCE] = {"weft_all_reduce", {"dtype", "op", "nelems"}},
    [WEFT_CALL_ALL_REDUCE_RMS_NORM] = {"weft_all_reduce_rms_norm",
                                       {"norm->rows", "norm->cols", "norm->dtype"}},
    [WEFT_CALL_ALL_GATHER] = {"weft_all_gather", {"dtype", "nelems"}},
    [WEFT_CALL_REDUCE_SCATTER] = {"weft_reduce_scatter", {"dtype", "op", "nelems"}},
    [WEFT_CALL_BROADCAST] = {"weft_broadcast", {"dtype", "nelems", "root"}},
    [WEFT_CALL_ALL_TO_ALL] = {"weft_all_to_all", {"dtype", "nelems"}},
    [WEFT_CALL_ALL_TO_ALLV] = {"weft_all_to_allv", {"dtype", "nparts"}},
    [WEFT_CALL_ALL_TO_ALLV_ON_DEVICE] = {"weft_all_to_allv_on_device",
                                         {"exchange->nparts", "exchange->cols", "exchange->dtype",
                                          "exchange->dest_by_part", "exchange->align"}},
    [WEFT_CALL_KV_SHUFFLE] = {"weft_kv_shuffle",
                              {"caches->count", "caches->blocks", "caches->block_bytes"}},
    [WEFT_CALL_ALL_GATHER_MATMUL] = {"weft_all_gather_matmul", {"dtype", "a_shard->cols"}},
    [WEFT_CALL_ALL_GATHER_SCALED_MATMUL] = {"weft_all_gather_scaled_matmul",
                                            {"dtype", "a_shard->cols"}},
    [WEFT_CALL_MATMUL_REDUCE_SCATTER] = {"weft_matmul_reduce_scatter",
                                         {"dtype", "op", "a->rows", "b->cols"}},
    [WEFT_CALL_SCALED_MATMUL_REDUCE_SCATTER] = {"weft_scaled_matmul_reduce_scatter",
                                                {"c_shard->dtype", "op", "a->rows", "b->cols"}},
    [WEFT_CALL_MATMUL_ALL_REDUCE] = {"weft_matmul_all_reduce",
                                     {"dtype", "op", "a->rows", "b->cols"}},
    [WEFT_CALL_MOE_CREATE] = {"weft_moe_create", {NULL}},
    [WEFT_CALL_MOE_DESTROY] = {"weft_moe_destroy", {"moe"}},
    [WEFT_CALL_MOE_DISPATCH] = {"weft_moe_dispatch", {"moe", "dtype"}},
    [WEFT_CALL_MOE_COMBINE] = {"weft_moe_combine", {"moe", "dtype"}},
    [WEFT_CALL_RESERVE] = {"weft_reserve", {NULL}},
};

const char *weft_call_name(uint32_t call) {
    return call < sizeof weft_calls / sizeof *weft_calls ? weft_calls[call].name : "a tensor call";
}
