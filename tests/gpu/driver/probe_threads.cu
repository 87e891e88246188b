/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernels whose threads wait for each other, for the test of the pretended driver itself. */
#define WEFT_KERNEL_THREADS
#include "base/gpu.cuh"

/* Each thread writes what its right neighbour in the block has put into the block's own memory. */
extern "C" __global__ void probe_shift(uint32_t *out) {
    WEFT_SHARED(uint32_t, values, 1024);
    uint32_t me = weft_block_thread();
    values[me] = (uint32_t)weft_thread_index();
    weft_block_sync();
    out[weft_thread_index()] = values[(me + 1) % weft_block_threads()];
}

/* Every thread waits until as many as `all` have come; how many came first stands in `order`. */
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

/* The last thread traps while the others wait. */
extern "C" __global__ void probe_trap_one(const uint32_t *word) {
    if (weft_thread_index() == weft_thread_count() - 1)
        weft_trap();
    if (weft_block_thread() % 2 == 0)
        weft_block_sync();
    while (weft_ld_acquire_sys(word) == 0)
        weft_spin_yield();
}
