/* SPDX-License-Identifier: BSD-3-Clause */
/* Extension: signal pads, used by the calling thread or in the order of a CUDA stream. */
#include <errno.h>
#include <shmemx.h>
#include "job/space.h"
#include "core/pad.h"
#include "api/refuse.h"

/* For a call without a peer, `peer` is the rank itself. */
static int check_pad(const struct weft_pad *pad, int peer) {
    int result = weft_refuse_phase();
    result = result ? result : weft_refuse_null("pads", pad->pads);
    if (result == 0 && (pad->me < 0 || pad->me >= pad->n))
        result = weft_fail(-EINVAL, "argument rank is %d, but n is %d: pass 0 to n - 1", pad->me,
                           pad->n);
    if (result == 0 && (peer < 0 || peer >= pad->n))
        result =
            weft_fail(-EINVAL, "argument peer is %d, but n is %d: pass 0 to n - 1", peer, pad->n);
    if (result == 0 && pad->channel < 0)
        result = weft_fail(-EINVAL, "argument channel is %d: pass 0 or more", pad->channel);
    return result;
}

static int use_pad(enum weft_pad_op op, const struct weft_pad *pad, int peer,
                   shmemx_stream_t stream) {
    int result = check_pad(pad, peer);
    if (result)
        return result;
    if (stream != SHMEMX_STREAM_HOST)
        return weft_space_device ? weft_space_device->pad(op, pad, peer, stream)
                                 : weft_space_missing();
    switch (op) {
    case WEFT_PAD_PUT:
        return weft_pad_put(pad, peer);
    case WEFT_PAD_WAIT:
        return weft_pad_wait(pad, peer);
    case WEFT_PAD_BARRIER:
        return weft_pad_barrier(pad);
    }
    __builtin_unreachable();
}

int shmemx_pad_put_on_stream(uint32_t *const *pads, int rank, int n, int peer, int channel,
                             uint64_t timeout_ms, shmemx_stream_t stream) {
    WEFT_IN_CALL(__func__);
    struct weft_pad pad = {pads, rank, n, channel, timeout_ms};
    return use_pad(WEFT_PAD_PUT, &pad, peer, stream);
}

int shmemx_pad_wait_on_stream(uint32_t *const *pads, int rank, int n, int peer, int channel,
                              uint64_t timeout_ms, shmemx_stream_t stream) {
    WEFT_IN_CALL(__func__);
    struct weft_pad pad = {pads, rank, n, channel, timeout_ms};
    return use_pad(WEFT_PAD_WAIT, &pad, peer, stream);
}

int shmemx_pad_barrier_on_stream(uint32_t *const *pads, int rank, int n, int channel,
                                 uint64_t timeout_ms, shmemx_stream_t stream) {
    WEFT_IN_CALL(__func__);
    struct weft_pad pad = {pads, rank, n, channel, timeout_ms};
    return use_pad(WEFT_PAD_BARRIER, &pad, rank, stream);
}
