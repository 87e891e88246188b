/* SPDX-License-Identifier: BSD-3-Clause */
/* A team's barrier: everybody stores the epoch into its own word at every member, and waits for
 * those of all members in its own memory. One way over the link, and no atomic.
 *
 * Epochs only grow, and 64 bits never wrap, so a member that is ahead does no harm, and a graph may
 * replay it. */
#define WEFT_KERNEL_THREADS
#include "transport/gpu_call.cuh"

extern "C" __global__ void __launch_bounds__(WEFT_GPU_MEMBERS_MAX)
    weftk_barrier(struct weft_gpu_abort abort, struct weft_array words, int me, int n,
                  struct weft_gpu_call call) {
    if (weft_block_index() != 0)
        return;
    struct weft_gpu_team_words *mine = call.mine;
    int id = (int)weft_block_thread(), count = (int)weft_block_threads();
    /* The fence is the release of all stores; behind the loads, so that all take their time
     * together. */
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
    weft_block_sync(); /* all threads have read the epoch; before the wait this took 0.1 us more */
    if (id == 0)
        mine->epoch = epoch;
}
