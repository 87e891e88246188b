/* SPDX-License-Identifier: BSD-3-Clause */
#include "device/pad.h"
#include "device/begin.h"
#include "device/gpus.h"
#include "transport/gpu_word.h"

static int pad_enqueue(enum weft_pad_op op, const struct weft_pad *pad, int peer,
                       weft_cu_stream stream) {
    switch (op) {
    case WEFT_PAD_PUT:
        return weft_gpu_pad_put(pad->pads, pad->me, pad->n, peer, pad->channel, pad->timeout_ms,
                                stream, pad->call);
    case WEFT_PAD_WAIT:
        return weft_gpu_pad_wait(pad->pads, pad->me, pad->n, peer, pad->channel, pad->timeout_ms,
                                 stream, pad->call);
    case WEFT_PAD_BARRIER:
        return weft_gpu_pad_barrier(pad->pads, pad->me, pad->n, pad->channel, pad->timeout_ms,
                                    stream, pad->call);
    }
    __builtin_unreachable();
}

int weft_device_pad(enum weft_pad_op op, const struct weft_pad *pad, int peer, void *stream) {
    int error = weft_device_begin(pad->call);
    if (error)
        return error;
    struct weft_gpu_scope scope = weft_gpu_enter(weft_device_gpu_here());
    error = pad_enqueue(op, pad, peer, stream);
    weft_gpu_leave(scope);
    return error;
}
