/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks whether a kernel may run: the team of its call must still exist. */
#ifndef WEFT_TRANSPORT_GPU_CALL_CUH
#define WEFT_TRANSPORT_GPU_CALL_CUH

#include "base/gpu.cuh"
#include "transport/gpu_kernel.h"
#include "transport/gpu_word.h"

/* Reports the fault to the host, which ends the job (transport/gpu_rescue.c). */
WEFT_DEVICE void weft_call_refuse(struct weft_gpu_abort abort, const struct weft_gpu_call *call,
                                  enum weft_gpu_fault fault) {
    if (!abort.gave_up)
        return;
    weft_st_relaxed_sys(&abort.gave_up[WEFT_GPU_FAULT_DETAIL], call->slot);
    weft_st_release_sys(&abort.gave_up[WEFT_GPU_FAULT], (uint32_t)fault);
}

/* Returns whether the team still exists. `found` is the value of call->mine->generation, loaded
 * together with other words. */
WEFT_DEVICE bool weft_call_holds(struct weft_gpu_abort abort, const struct weft_gpu_call *call,
                                 uint32_t found) {
    if (found == call->generation)
        return true;
    weft_call_refuse(abort, call, WEFT_GPU_STALE);
    return false;
}

#endif
