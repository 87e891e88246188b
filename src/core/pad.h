/* SPDX-License-Identifier: BSD-3-Clause */
/* Signal pads in memory of the host, signalled and waited for by the calling thread: what
 * transport/pad.cu is for GPUs, in the same protocol. */
#ifndef WEFT_CORE_PAD_H
#define WEFT_CORE_PAD_H

#include "base/pad.h"

/* 0, or -ETIMEDOUT with text. Without a limit, the job ends with a line if the peer has finalized
 * and its PE is known: if its pad lies in a share of the block of the own pad, or in the heap. */
int weft_pad_put(const struct weft_pad *pad, int peer);
int weft_pad_wait(const struct weft_pad *pad, int peer);

/* Puts to all peers, then waits for all. */
int weft_pad_barrier(const struct weft_pad *pad);

#endif
