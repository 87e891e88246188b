/* SPDX-License-Identifier: BSD-3-Clause */
#include "device/pad.h"
#include "device/begin.h"
#include "device/gpus.h"
#include "transport/gpu_word.h"

int weft_device_pad(enum weft_pad_op op, const struct weft_pad *pad, int peer, void *stream,
                    const char *call) {
    int error = weft_device_begin(call);
    if (error)
        return error;
    struct weft_gpu_scope scope = weft_gpu_enter(weft_device_gpu_here());
    error = weft_gpu_pad(op, pad, peer, stream, call);
    weft_gpu_leave(scope);
    return error;
}
