/* SPDX-License-Identifier: BSD-3-Clause */
/* One half of a meeting, with the words and steps of weft_gpu_meet, which uses stream memory
 * operations: a member may meet by either. Every member writes 1 into its own word at every member,
 * waits for a 1 from each, and clears it. */
#define WEFT_KERNEL_THREADS
#include "transport/gpu_call.cuh"

/* `words`: the members' arrays of this half. */
extern "C" __global__ void __launch_bounds__(WEFT_GPU_MEMBERS_MAX)
    weftk_meet(struct weft_gpu_abort abort, struct weft_array words, int me, int n,
               struct weft_gpu_call call) {
    weft_dependency_wait();
    if (weft_block_index() != 0)
        return;
    int id = (int)weft_block_thread(), count = (int)weft_block_threads();
    /* The fence releases all stores, and runs while the load is in flight. */
    uint32_t generation = weft_ld_relaxed_sys(&call.mine->generation);
    weft_fence_sys();
    if (!weft_call_holds(abort, &call, generation))
        return;
    for (int i = id; i < n; i += count) {
        uint32_t *member = (uint32_t *)weft_array_of(&words, i);
        weft_st_relaxed_sys(&member[me], 1u);
    }
    uint32_t *mine = (uint32_t *)weft_array_of(&words, me);
    struct weft_spin spin = {};
    for (int i = id; i < n; i += count) {
        while (weft_ld_acquire_sys(&mine[i]) != 1)
            if (!weft_spin(&spin, abort))
                break;
        weft_st_relaxed_sys(&mine[i], 0u);
    }
}
