/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernels in which warps do the work: their numbers, sums over a block's threads, and faults.
 * Blocks consist of whole warps. */
#ifndef WEFT_FUSED_WARPS_CUH
#define WEFT_FUSED_WARPS_CUH

#include "base/gpu.cuh"
#include "transport/gpu_kernel.h"

WEFT_DEVICE uint32_t warp_in_block(void) {
    return weft_block_thread() / WEFT_WARP_LANES;
}

/* The warps of all blocks take pieces of work in turn. */
WEFT_DEVICE size_t warp_index(void) {
    return (size_t)weft_block_index() * (weft_block_threads() / WEFT_WARP_LANES) + warp_in_block();
}
WEFT_DEVICE size_t warp_count(void) {
    return (size_t)weft_block_count() * (weft_block_threads() / WEFT_WARP_LANES);
}

WEFT_DEVICE struct weft_thread_group lanes(void) {
    return {weft_lane(), WEFT_WARP_LANES};
}

/* Returns the sum of `mine` over the threads before this one, and in *total over all threads of the
 * block. `sums` is shared, with an element for each thread. */
template <class T> WEFT_DEVICE T sum_before(T *sums, T mine, T *total) {
    uint32_t thread = weft_block_thread(), threads = weft_block_threads();
    sums[thread] = mine;
    weft_block_sync();
    for (uint32_t distance = 1; distance < threads; distance *= 2) {
        T other = thread >= distance ? sums[thread - distance] : 0;
        weft_block_sync();
        sums[thread] += other;
        weft_block_sync();
    }
    *total = sums[threads - 1];
    T before = sums[thread] - mine;
    weft_block_sync();
    return before;
}

/* Makes the host end the job, with a text that contains the detail. */
WEFT_DEVICE void weft_fault(struct weft_gpu_abort abort, enum weft_gpu_fault fault,
                            uint32_t detail) {
    if (!abort.gave_up)
        return;
    weft_st_relaxed_sys(&abort.gave_up[WEFT_GPU_FAULT_DETAIL], detail);
    weft_st_release_sys(&abort.gave_up[WEFT_GPU_FAULT], (uint32_t)fault);
}

#endif
