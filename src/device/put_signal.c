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

/* What is announced, as this PE's GPU has it. */
struct announced {
    void *to;
    const void *from;
    size_t bytes;
    uint64_t *word, signal;
    bool add;
    int pe;
};

/* A small payload and its signal are one kernel, where the kernel reaches the source. */
static void payload_announce(const struct announced *a, const char *call) {
    if (a->bytes <= WEFT_GPU_SMALL) {
        weft_device_must(weft_gpu_put_signal(a->to, a->from, a->bytes, a->word, a->signal, a->add,
                                             weft_device.gpu->stream, call));
    } else {
        weft_device_enqueue(a->to, a->from, a->bytes, a->pe, call);
        weft_device_must(
            weft_gpu_signal(a->word, a->signal, a->add, weft_device.gpu->stream, call));
    }
    weft_device_note();
}

/* What the kernels cannot read passes through the bounce buffer, or goes by a copy engine. */
static void payload_announce_private(const struct announced *a, const char *call) {
    struct announced bounced = *a;
    void *bounce = a->bytes <= WEFT_DEVICE_BOUNCE_BYTES ? weft_device_bounce_take() : NULL;
    if (bounce) {
        bounced.from = memcpy(bounce, a->from, a->bytes);
        payload_announce(&bounced, call);
        weft_device_complete(call);
        weft_device_bounce_give();
        return;
    }
    weft_device_enqueue(a->to, a->from, a->bytes, a->pe, call);
    weft_device_must(weft_gpu_signal(a->word, a->signal, a->add, weft_device.gpu->stream, call));
    weft_device_note();
}

/* Where it is not the same GPU that brings the payload and changes the word: that of the host is
 * for processors to change, that of a GPU which is staged is for that GPU. When the payload has
 * arrived.
 */
static int payload_put_then_signal(const struct weft_put_signal *put, int pe, const char *call) {
    int error = weft_device_concerns(put->dest, put->source)
                    ? weft_device_put(put->dest, put->source, put->bytes, pe, true, call)
                    : weft_rma_put_near(put->dest, put->source, put->bytes, pe);
    if (error)
        return error;
    weft_device_quiet(call);
    return weft_device_signal(put->sig_addr, put->signal, put->op, pe, call);
}

int weft_device_put_signal(const struct weft_put_signal *put, int pe, const char *call) {
    struct announced a = {.to = weft_device_near(put->dest, put->bytes, pe),
                          .from = put->source,
                          .bytes = put->bytes,
                          .word = weft_device_near(put->sig_addr, sizeof *put->sig_addr, pe),
                          .signal = put->signal,
                          .add = put->op == WEFT_SIGNAL_ADD,
                          .pe = pe};
    if (!a.word || (!a.to && a.bytes != 0))
        return weft_near_error(a.word ? a.bytes : sizeof *a.word, pe);
    if (!weft_device_holds(put->sig_addr) || !weft_device_changes(pe, a.add))
        return payload_put_then_signal(put, pe, call);
    if (a.bytes != 0 && !weft_device_concerns(put->dest, put->source)) {
        weft_rma_put_near(put->dest, a.from, a.bytes, pe); /* and seen before the signal */
        a.bytes = 0;
    }
    if (a.bytes == 0)
        return weft_device_signal(put->sig_addr, put->signal, put->op, pe, call);
    struct weft_gpu_scope scope = weft_gpu_enter(weft_device.gpu);
    (memory_is_out_of_reach(a.from) || memory_is_out_of_reach(a.to) ? payload_announce_private
                                                                    : payload_announce)(&a, call);
    if (!put->nbi)
        weft_device_drain(call);
    weft_gpu_leave(scope);
    return 0;
}
