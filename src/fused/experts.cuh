/* SPDX-License-Identifier: BSD-3-Clause */
/* What the kernels for mixtures of experts share: places in halves (fused/experts.h), parts of
 * rows, and lists of addresses. Warps move parts of rows; blocks consist of whole warps. A lane
 * prepares the slot of its number, and the warp keeps a list in the block's shared memory. */
#ifndef WEFT_FUSED_EXPERTS_CUH
#define WEFT_FUSED_EXPERTS_CUH

#include "fused/experts.h"
#include "fused/warps.cuh"

enum { EXPERTS_FLIGHT = 4, EXPERTS_WARPS = WEFT_EXPERTS_THREADS / WEFT_WARP_LANES };
enum { EXPERTS_LIST = EXPERTS_WARPS * WEFT_EXPERTS_TOP_K_MAX };

/* --- Parts
 * ---------------------------------------------------------------------------------------- */

/* A part of a row, in bytes. */
struct row_part {
    size_t row, begin, bytes;
};

WEFT_DEVICE struct row_part part_of(const struct weft_experts_task &task, size_t piece) {
    struct row_part part = {piece / task.parts, piece % task.parts * task.part_bytes, 0};
    size_t left = task.row_bytes - part.begin;
    part.bytes = left < task.part_bytes ? left : task.part_bytes;
    return part;
}

/* --- Halves ----------------------------------------------------------------------------------- */

WEFT_DEVICE char *half_of(const struct weft_experts_task &task, int member) {
    return weft_array_of(&task.halves, member);
}

WEFT_DEVICE char *list_of(const struct weft_experts_task &task, int at, int from) {
    return half_of(task, at) + (size_t)from * task.list_step;
}

/* Returns the place of a token of `from` in the half of `at`. */
WEFT_DEVICE char *row_in(const struct weft_experts_task &task, int at, int from, size_t token) {
    size_t place = (size_t)from * task.tokens_max + token;
    return half_of(task, at) + task.rows_at + place * task.row_step;
}
WEFT_DEVICE char *record_in(const struct weft_experts_task &task, int at, int from, size_t token) {
    size_t place = (size_t)from * task.tokens_max + token;
    return half_of(task, at) + place * task.record_step;
}

WEFT_DEVICE uint32_t slots_max(const struct weft_experts_task &task) {
    return task.tokens_max * task.top_k;
}

/* Returns the member that has the expert of this lane's slot of a token of this member, or
 * UINT32_MAX. */
WEFT_DEVICE uint32_t member_of_lane(const struct weft_experts_task &task, size_t token) {
    uint32_t slot = weft_lane(), all = task.experts_each * (uint32_t)task.n;
    if (slot >= task.top_k)
        return UINT32_MAX;
    uint32_t expert = (uint32_t)weft_ld_weak(&task.experts[token * task.top_k + slot]);
    return expert < all ? expert / task.experts_each : UINT32_MAX;
}

/* --- Lists ------------------------------------------------------------------------------------ */

/* A warp's addresses, in shared memory. */
struct address_list {
    char **of;
    int count;
};

/* Returns an empty list of this warp in `room`, shared memory of the block. The warp's earlier list
 * there is not used any more. */
WEFT_DEVICE struct address_list list_in(char **room) {
    weft_warp_sync();
    return {room + warp_in_block() * WEFT_EXPERTS_TOP_K_MAX, 0};
}

/* Adds the address of each lane whose key is not UINT32_MAX, in the order of keys; of several lanes
 * with one key, the first one's. */
WEFT_DEVICE void add_in_order(struct address_list *list, char *address, uint32_t key,
                              uint32_t top_k) {
    bool first = key != UINT32_MAX;
    uint32_t before = 0;
    for (uint32_t lane = 0; lane < top_k; lane++)
        first &= weft_warp_broadcast_u32(key, lane) != key || lane >= weft_lane();
    for (uint32_t lane = 0; lane < top_k; lane++) {
        uint32_t other = weft_warp_broadcast_u32(first ? key : UINT32_MAX, lane);
        before += other < key;
        list->count += other != UINT32_MAX;
    }
    if (first)
        list->of[before] = address;
    weft_warp_sync();
}

#endif
