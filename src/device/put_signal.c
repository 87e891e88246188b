/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>
#include "device/device.h"

/* Uses one kernel for a small payload and its signal, if the kernel can access both sides. The
 * addresses of `put` are those for this PE's GPU. */
static void payload_announce(const struct weft_put_signal *put, int pe, bool reached) {
    weft_cu_stream stream = weft_device.gpu->stream;
    if (reached && put->bytes <= WEFT_GPU_SMALL) {
        weft_device_must(weft_gpu_put_signal(put, stream));
    } else {
        weft_device_enqueue(put->dest, put->source, put->bytes, pe);
        weft_device_must(
            weft_gpu_signal(put->sig_addr, put->signal, put->op == WEFT_SIGNAL_ADD, stream));
    }
    weft_device_note();
}

/* Puts and signals a payload that kernels cannot read: through the staging buffer, or by a copy
 * engine. */
static void payload_announce_private(const struct weft_put_signal *put, int pe) {
    struct weft_put_signal staged = *put;
    void *staging = put->bytes <= WEFT_DEVICE_STAGING_BYTES ? weft_device_staging_take() : NULL;
    if (staging)
        staged.source = memcpy(staging, put->source, put->bytes);
    payload_announce(&staged, pe, staging != NULL);
    if (staging) {
        weft_device_complete();
        weft_device_staging_give();
    }
}

/* Signals after the payload has arrived, for cases in which the payload and the word are written by
 * different units: processors change words of the host, and the GPU of a staged PE changes its own.
 */
static int payload_put_then_signal(const struct weft_put_signal *put, int pe) {
    int error = weft_device_concerns(put->dest, put->source)
                    ? weft_device_put(put->dest, put->source, put->bytes, pe, true)
                    : weft_rma_put_near(put->dest, put->source, put->bytes, pe);
    if (error)
        return error;
    weft_device_quiet();
    return weft_device_signal(put->sig_addr, put->signal, put->op, pe);
}

int weft_device_put_signal(const struct weft_put_signal *put, int pe) {
    struct weft_put_signal near = *put;
    if (weft_is_far(pe))
        return weft_device_far_put_signal(put, pe);
    near.dest = weft_device_near(put->dest, put->bytes, pe);
    near.sig_addr = weft_device_near(put->sig_addr, sizeof *put->sig_addr, pe);
    if (!near.sig_addr || (!near.dest && put->bytes != 0))
        return weft_near_error(near.sig_addr ? put->bytes : sizeof *put->sig_addr, pe);
    if (!weft_device_holds(put->sig_addr) || !weft_device_changes(pe, put->op == WEFT_SIGNAL_ADD))
        return payload_put_then_signal(put, pe);
    if (put->bytes != 0 && !weft_device_concerns(put->dest, put->source)) {
        weft_rma_put_near(put->dest, put->source, put->bytes, pe); /* visible before the signal */
        near.bytes = 0;
    }
    if (near.bytes == 0)
        return weft_device_signal(put->sig_addr, put->signal, put->op, pe);
    struct weft_gpu_scope scope = weft_gpu_enter(weft_device.gpu);
    if (weft_device_reaches(near.source))
        payload_announce(&near, pe, weft_device_reaches(near.dest));
    else
        payload_announce_private(&near, pe);
    if (!put->nbi)
        weft_device_drain();
    weft_gpu_leave(scope);
    return 0;
}
