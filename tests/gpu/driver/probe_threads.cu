/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernels whose threads wait for each other, for the test of the pretended driver itself. */
#define WEFT_KERNEL_THREADS
#include "base/gpu.cuh"
#include "probe.h"

/* Each thread writes the value that its right neighbour in the block has stored in the block's own
 * memory. */
extern "C" __global__ void probe_shift(uint32_t *out) {
    WEFT_SHARED(uint32_t, values, 1024);
    uint32_t me = weft_block_thread();
    values[me] = (uint32_t)weft_thread_index();
    weft_block_sync();
    out[weft_thread_index()] = values[(me + 1) % weft_block_threads()];
}

/* Every thread waits until `all` threads have arrived; `order` receives how many arrived first. */
extern "C" __global__ void probe_crowd(uint32_t *come, uint32_t all, uint32_t *order) {
    order[weft_thread_index()] = weft_atom_add_sys(come, 1u);
    while (weft_ld_acquire_sys(come) < all)
        weft_spin_yield();
}

/* The largest number of blocks that are under way at once. */
extern "C" __global__ void probe_resident(uint32_t *now, uint32_t *most) {
    if (weft_block_thread() == 0) {
        uint32_t mine = weft_atom_add_sys(now, 1u) + 1;
        for (int turn = 0; turn < 100; turn++)
            weft_spin_yield();
        if (mine > *most)
            *most = mine;
    }
    weft_block_sync();
    if (weft_block_thread() == 0)
        weft_atom_add_sys(now, (uint32_t)-1);
}

/* Counts how often a flag is seen before all of its data. The first block's threads store a word
 * each and, after a barrier of theirs, one of them the flag; the second block reads. */
extern "C" __global__ void probe_message(uint32_t *data, uint32_t *flag, uint32_t released,
                                         uint32_t *missing) {
    uint32_t me = weft_block_thread();
    for (uint32_t round = 1; round <= 50; round++) {
        if (weft_block_index() == 0) {
            weft_st_relaxed_sys(&data[me], round);
            weft_block_sync();
            if (me == 0 && released)
                weft_st_release_sys(flag, round);
            else if (me == 0)
                weft_st_relaxed_sys(flag, round);
            while (weft_ld_acquire_sys(flag + 1) < round)
                weft_spin_yield();
            weft_block_sync();
        } else {
            while (weft_ld_acquire_sys(flag) < round)
                weft_spin_yield();
            if (weft_ld_relaxed_sys(&data[me]) != round)
                weft_atom_add_sys(missing, 1u);
            if (weft_block_sync_any(0) == 0 && me == 0)
                weft_st_release_sys(flag + 1, round);
        }
    }
}

/* Counts how often a weak load returns an earlier content although a flag has been seen that was
 * released after the newer data: by a thread that reads the flag itself, or at a barrier after it.
 */
extern "C" __global__ void probe_stale(uint64_t *data, uint32_t *flag, uint32_t acquired,
                                       uint32_t *stale) {
    uint32_t me = weft_block_thread();
    for (uint32_t round = 1; round <= 50; round++) {
        if (weft_block_index() == 0) {
            weft_st_weak(&data[me], (uint64_t)round);
            weft_block_sync();
            if (me == 0)
                weft_st_release_sys(flag, round);
        } else {
            while (me == 0 &&
                   (acquired ? weft_ld_acquire_sys(flag) : weft_ld_relaxed_sys(flag)) < round)
                weft_spin_yield();
            weft_block_sync();
            if (weft_ld_weak(&data[me]) < round)
                weft_atom_add_sys(&stale[me], 1u);
        }
    }
}

/* Each lane's value plus its neighbour's on the left, and how many lanes there are. */
extern "C" __global__ void probe_warp(uint32_t *out) {
    uint32_t me = weft_block_thread();
    uint32_t left = __shfl_sync(~0u, me, (int)(kernel_lane() + warpSize - 1));
    uint32_t lanes = (uint32_t)__builtin_popcount(__ballot_sync(~0u, 1));
    out[weft_thread_index()] = kernel_lane() == 0 ? lanes : me + left;
}

/* As probe_message, by warps: the lanes of one store a word each, the first lane then the flag. */
extern "C" __global__ void probe_warp_message(uint32_t *data, uint32_t *flag, uint32_t synced,
                                              uint32_t *missing) {
    uint32_t me = weft_block_thread();
    for (uint32_t round = 1; round <= 50; round++) {
        if (weft_block_index() == 0) {
            weft_st_relaxed_sys(&data[me], round);
            if (synced)
                __syncwarp();
            if (me == 0)
                weft_st_release_sys(flag, round);
        } else {
            while (me == 0 && weft_ld_acquire_sys(flag) < round)
                weft_spin_yield();
            __syncwarp();
            if (weft_ld_relaxed_sys(&data[me]) < round)
                weft_atom_add_sys(missing, 1u);
        }
        __syncwarp();
        if (me == 0 && weft_block_index() == 1)
            weft_st_release_sys(flag + 1, round);
        while (me == 0 && weft_ld_acquire_sys(flag + 1) < round)
            weft_spin_yield();
        __syncwarp();
    }
}

/* --- Bulk copies ----------------------------------------------------------------------------- */

/* Threads make a tile, and one of them puts and announces it. */
WEFT_DEVICE void bulk_send(uint64_t *data, uint32_t *flag, uint32_t round, uint32_t without) {
    WEFT_SHARED(uint64_t, tile, PROBE_TILE);
    uint32_t me = weft_block_thread();
    tile[me] = round * 1000 + me;
    if (without != PROBE_FENCE_SHARED)
        weft_fence_async_shared();
    weft_block_sync();
    if (me == 0) {
        weft_bulk_put(data, tile, sizeof(uint64_t) * PROBE_TILE);
        if (without != PROBE_COMMIT)
            weft_bulk_commit();
        if (without == PROBE_WAIT)
            weft_bulk_wait_read();
        else
            weft_bulk_wait();
        weft_st_release_sys(flag, round);
    }
    weft_block_sync();
    tile[me] = 0;
    while (me == 0 && weft_ld_acquire_sys(flag + 1) < round)
        weft_spin_yield();
    weft_block_sync();
}

/* One thread loads the tile, and all read it. */
WEFT_DEVICE void bulk_receive(const uint64_t *data, uint32_t *flag, uint32_t round,
                              uint32_t without, uint64_t *mbarrier, uint32_t *missing) {
    WEFT_SHARED(uint64_t, tile, PROBE_TILE);
    uint32_t me = weft_block_thread();
    if (me == 0) {
        while (weft_ld_acquire_sys(flag) < round)
            weft_spin_yield();
        if (without != PROBE_FENCE)
            weft_fence_async();
        weft_mbarrier_expect(mbarrier, sizeof(uint64_t) * PROBE_TILE);
        weft_bulk_load(tile, data, sizeof(uint64_t) * PROBE_TILE, mbarrier);
    }
    uint64_t early = tile[me];
    while (!weft_mbarrier_test(mbarrier, (round - 1) & 1))
        weft_spin_yield();
    if ((without == PROBE_MBARRIER ? early : tile[me]) != round * 1000 + me)
        weft_atom_add_sys(missing, 1u);
    weft_block_sync();
    if (me == 0)
        weft_st_release_sys(flag + 1, round);
}

/* How many words of a tile that a bulk copy has put, and another one loaded, are not there, with
 * one thing left out (enum probe_without). */
extern "C" __global__ void probe_bulk(uint64_t *data, uint32_t *flag, uint32_t without,
                                      uint32_t *missing) {
    WEFT_SHARED(uint64_t, mbarrier, 1);
    if (weft_block_thread() == 0)
        weft_mbarrier_init(mbarrier, 1);
    weft_block_sync();
    for (uint32_t round = 1; round <= 20; round++)
        if (weft_block_index() == 0)
            bulk_send(data, flag, round, without);
        else
            bulk_receive(data, flag, round, without, mbarrier, missing);
}

/* Two halves of a quad that do not belong together. */
extern "C" __global__ void probe_torn(struct weft_quad *quad, uint32_t *torn) {
    for (uint32_t round = 1; round <= 200; round++)
        if (weft_block_index() == 0) {
            weft_st_relaxed_sys(quad, {round, round, round, round});
            weft_spin_yield();
        } else {
            struct weft_quad seen = weft_ld_relaxed_sys(quad);
            if (seen.a != seen.b || seen.c != seen.d)
                weft_trap();
            if (seen.a != seen.c)
                weft_atom_add_sys(torn, 1u);
            weft_spin_yield();
        }
}

/* The last thread traps while the others wait. */
extern "C" __global__ void probe_trap_one(const uint32_t *word) {
    if (weft_thread_index() == weft_thread_count() - 1)
        weft_trap();
    if (weft_block_thread() % 2 == 0)
        weft_block_sync();
    while (weft_ld_acquire_sys(word) == 0)
        weft_spin_yield();
}
