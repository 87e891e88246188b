/* SPDX-License-Identifier: BSD-3-Clause */
#include "device/put_signal.h"
#include <string.h>
#include "device/device.h"
#include "device/queue.h"
#include "device/rma.h"
#include "device/word.h"

static bool memory_is_out_of_reach(const void *p) {
    return weft_gpu_memory_kind(p) == WEFT_MEMORY_HOST;
}

/* A small payload and its signal are one kernel, where the kernel reaches the source. */
static void payload_announce(void *to, const void *from, size_t bytes, uint64_t *word,
                             uint64_t signal, bool add, int pe, const char *call) {
    if (bytes <= WEFT_GPU_SMALL) {
        weft_device_must(
            weft_gpu_put_signal(to, from, bytes, word, signal, add, weft_device.gpu->stream, call));
    } else {
        weft_device_enqueue(to, from, bytes, pe, call);
        weft_device_must(weft_gpu_signal(word, signal, add, weft_device.gpu->stream, call));
    }
    weft_device_note();
}

/* What the kernels cannot read passes through the bounce buffer, or goes by a copy engine. */
static void payload_announce_private(void *to, const void *from, size_t bytes, uint64_t *word,
                                     uint64_t signal, bool add, int pe, const char *call) {
    void *bounce = bytes <= WEFT_DEVICE_BOUNCE_BYTES ? weft_device_bounce_take() : NULL;
    if (bounce) {
        memcpy(bounce, from, bytes);
        payload_announce(to, bounce, bytes, word, signal, add, pe, call);
        weft_device_complete(call);
        weft_device_bounce_give();
        return;
    }
    weft_device_enqueue(to, from, bytes, pe, call);
    weft_device_must(weft_gpu_signal(word, signal, add, weft_device.gpu->stream, call));
    weft_device_note();
}

/* Where it is not the same GPU that brings the payload and changes the word: that of the host is
 * for processors to change, that of a GPU which is staged is for that GPU. When the payload has
 * arrived.
 */
static int payload_put_then_signal(void *dest, const void *source, size_t bytes, uint64_t *sig_addr,
                                   uint64_t signal, enum weft_signal_op op, int pe,
                                   const char *call) {
    int error = weft_device_concerns(dest, source)
                    ? weft_device_put(dest, source, bytes, pe, true, call)
                    : weft_rma_put(dest, source, bytes, pe);
    if (error)
        return error;
    weft_device_quiet(call);
    return weft_device_signal(sig_addr, signal, op, pe, call);
}

int weft_device_put_signal(void *dest, const void *source, size_t bytes, uint64_t *sig_addr,
                           uint64_t signal, enum weft_signal_op op, int pe, bool nbi,
                           const char *call) {
    uint64_t *word = weft_device_near(sig_addr, sizeof *sig_addr, pe);
    void *to = weft_device_near(dest, bytes, pe);
    bool add = op == WEFT_SIGNAL_ADD;
    if (!word || (!to && bytes != 0))
        return weft_near_error(word ? bytes : sizeof *sig_addr, pe);
    if (!weft_device_holds(sig_addr) || !weft_device_changes(pe, add))
        return payload_put_then_signal(dest, source, bytes, sig_addr, signal, op, pe, call);
    if (bytes != 0 && !weft_device_concerns(dest, source)) {
        weft_rma_put(dest, source, bytes, pe); /* by this processor, and seen before the signal */
        bytes = 0;
    }
    if (bytes == 0)
        return weft_device_signal(sig_addr, signal, op, pe, call);
    struct weft_gpu_scope scope = weft_gpu_enter(weft_device.gpu);
    if (memory_is_out_of_reach(source) || memory_is_out_of_reach(to))
        payload_announce_private(to, source, bytes, word, signal, add, pe, call);
    else
        payload_announce(to, source, bytes, word, signal, add, pe, call);
    if (!nbi)
        weft_device_drain(call);
    weft_gpu_leave(scope);
    return 0;
}
