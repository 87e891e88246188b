/* SPDX-License-Identifier: BSD-3-Clause */
/* Groups of threads that work together: one thread, a warp or a block, for the suffixes _t, _w and
 * _b of the interface. A block may have any number of threads and dimensions. `scope` is a
 * compile-time constant. */
#ifndef WEFT_DEVICE_GROUP_CUH
#define WEFT_DEVICE_GROUP_CUH

#include "weft/device/ptx.cuh"

/* Return this thread's number in its block, the number of threads of a block, this block's number
 * in the grid, and the number of blocks of the grid, for any dimensions. */
WEFT_DEVICE uint32_t weft_block_rank(void) {
    uint32_t row = weft_block_thread_y() + weft_block_threads_y() * weft_block_thread_z();
    return weft_block_thread() + weft_block_threads() * row;
}
WEFT_DEVICE uint32_t weft_block_size(void) {
    return weft_block_threads() * weft_block_threads_y() * weft_block_threads_z();
}
WEFT_DEVICE uint32_t weft_grid_index(void) {
    uint32_t row = weft_block_index_y() + weft_block_count_y() * weft_block_index_z();
    return weft_block_index() + weft_block_count() * row;
}
WEFT_DEVICE uint32_t weft_grid_size(void) {
    return weft_block_count() * weft_block_count_y() * weft_block_count_z();
}

enum weft_scope { WEFT_SCOPE_t, WEFT_SCOPE_w, WEFT_SCOPE_b };

/* This thread's number `id` in a group of `count` threads. */
struct weft_thread_group {
    uint32_t id, count;
};

/* Returns this thread's group. A block's last warp may have fewer lanes than the others. */
WEFT_DEVICE struct weft_thread_group weft_scope_group(enum weft_scope scope) {
    struct weft_thread_group group = {0, 1};
    if (scope == WEFT_SCOPE_w) {
        uint32_t lane = weft_lane(), left = weft_block_size() - (weft_block_rank() - lane);
        group.id = lane;
        group.count = left < WEFT_WARP_LANES ? left : (uint32_t)WEFT_WARP_LANES;
    } else if (scope == WEFT_SCOPE_b) {
        group.id = weft_block_rank();
        group.count = weft_block_size();
    }
    return group;
}

/* Returns 1 in the thread that acts for its group. */
WEFT_DEVICE int weft_scope_first(enum weft_scope scope) {
    return scope == WEFT_SCOPE_t || (scope == WEFT_SCOPE_w ? weft_lane() : weft_block_rank()) == 0;
}

/* Blocks until all threads of the group have called it. Afterwards all see what each has done
 * before. */
WEFT_DEVICE void weft_scope_sync(enum weft_scope scope) {
    if (scope == WEFT_SCOPE_w)
        weft_warp_sync();
    else if (scope == WEFT_SCOPE_b)
        weft_block_sync();
}

/* As weft_scope_sync; returns non-zero in all threads if one passed non-zero. */
WEFT_DEVICE int weft_scope_sync_any(enum weft_scope scope, int mine) {
    if (scope == WEFT_SCOPE_w)
        return weft_warp_sync_any((uint32_t)mine) != 0;
    if (scope == WEFT_SCOPE_b)
        return weft_block_sync_any((uint32_t)mine) != 0;
    return mine;
}

#endif
