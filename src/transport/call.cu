/* SPDX-License-Identifier: BSD-3-Clause */
/* Begin and end of a team's call in checked mode. The word `busy` is set between them, so that a
 * call that overlaps is detected: on another branch of a capture, or in a graph launched at the
 * same time. */
#include "transport/gpu_call.cuh"

extern "C" __global__ void weftk_call_begin(struct weft_gpu_abort abort,
                                            struct weft_gpu_call call) {
    weft_dependency_wait();
    if (weft_thread_index() == 0 &&
        weft_call_holds(abort, &call, weft_ld_relaxed_sys(&call.mine->generation)) &&
        weft_atom_exch_sys(&call.mine->busy, 1u) != 0)
        weft_call_refuse(abort, &call, WEFT_GPU_BUSY);
}

extern "C" __global__ void weftk_call_end(struct weft_gpu_abort, struct weft_gpu_call call) {
    weft_dependency_wait();
    if (weft_thread_index() == 0 && weft_ld_relaxed_sys(&call.mine->generation) == call.generation)
        weft_st_relaxed_sys(&call.mine->busy, 0u);
}
