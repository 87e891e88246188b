/* SPDX-License-Identifier: BSD-3-Clause */
/* The bounds of a team's call in checked mode. Between them the word `busy` is set, so that a call
 * beside it is found: on another branch of a capture, or in a graph that is launched beside it. */
#include "transport/gpu_call.cuh"

extern "C" __global__ void weftk_call_begin(struct weft_gpu_abort abort,
                                            struct weft_gpu_call call) {
    if (weft_thread_index() == 0 &&
        weft_call_holds(abort, &call, weft_ld_relaxed_sys(&call.mine->generation)) &&
        weft_atom_exch_sys(&call.mine->busy, 1u) != 0)
        weft_call_refuse(abort, &call, WEFT_GPU_BUSY);
}

extern "C" __global__ void weftk_call_end(struct weft_gpu_abort, struct weft_gpu_call call) {
    if (weft_thread_index() == 0 && weft_ld_relaxed_sys(&call.mine->generation) == call.generation)
        weft_st_relaxed_sys(&call.mine->busy, 0u);
}
