/* SPDX-License-Identifier: BSD-3-Clause */
/* A team's barrier: every member stores the epoch to its own word at every member, and waits for
 * the words of all members in its own memory. It crosses the link once, and uses no atomics.
 *
 * Epochs only grow, and 64 bits never wrap. So a member that is ahead does no harm, and a graph may
 * replay the barrier. */
#define WEFT_KERNEL_THREADS
#include "transport/gpu_call.cuh"

extern "C" __global__ void __launch_bounds__(WEFT_GPU_MEMBERS_MAX)
    weftk_barrier(struct weft_gpu_abort abort, struct weft_array words, int me, int n,
                  struct weft_gpu_call call) {
    weft_dependency_wait();
    if (weft_block_index() != 0)
        return;
    struct weft_gpu_team_words *mine = call.mine;
    int id = (int)weft_block_thread(), count = (int)weft_block_threads();
    /* The fence releases all earlier stores. It follows the loads, so that their latencies overlap.
     */
    uint64_t epoch = weft_ld_relaxed_sys(&mine->epoch);
    uint32_t generation = weft_ld_relaxed_sys(&mine->generation);
    weft_fence_sys();
    if (!weft_call_holds(abort, &call, generation))
        return;
    epoch++;
    for (int i = id; i < n; i += count) {
        char *member = weft_array_of(&words, i);
        weft_st_relaxed_sys(&((struct weft_gpu_team_words *)member)->arrived[me], epoch);
    }
    struct weft_spin spin = {};
    for (int i = id; i < n; i += count)
        while (weft_ld_acquire_sys(&mine->arrived[i]) < epoch)
            if (!weft_spin(&spin, abort))
                break;
    weft_block_sync(); /* all threads have read the epoch; a sync before the wait took 0.1 us more
                        */
    if (id == 0)
        mine->epoch = epoch;
}
