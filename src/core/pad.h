/* SPDX-License-Identifier: BSD-3-Clause */
/* Signal pads in memory of the host, signalled and waited for by the calling thread: what
 * transport/pad.cu is for GPUs, in the same protocol. The word of (channel, source) in a pad is
 * pad[n * channel + source]; put takes it from 0 to 1, wait back from 1 to 0. */
#ifndef WEFT_CORE_PAD_H
#define WEFT_CORE_PAD_H

#include <stdint.h>

/* What all calls have in common. Arguments have been checked. */
struct weft_pad {
    uint32_t *const *pads; /* of each rank */
    int me, n, channel;
    uint64_t timeout_ms; /* 0: for ever */
    const char *call;
};

enum weft_pad_op { WEFT_PAD_PUT, WEFT_PAD_WAIT, WEFT_PAD_BARRIER };

/* 0, or -ETIMEDOUT with text. Ranks are no PEs, so a peer in shmem_finalize is not noticed; one
 * that dies is. */
int weft_pad_put(const struct weft_pad *pad, int peer);
int weft_pad_wait(const struct weft_pad *pad, int peer);

/* Puts to all peers, then waits for all. */
int weft_pad_barrier(const struct weft_pad *pad);

#endif
