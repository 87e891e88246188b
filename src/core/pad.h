/* SPDX-License-Identifier: BSD-3-Clause */
/* Signal pads in host memory, used by the calling thread; the protocol is that of transport/pad.cu
 * for GPUs. */
#ifndef WEFT_CORE_PAD_H
#define WEFT_CORE_PAD_H

#include "base/pad.h"

/* Both return 0, or -ETIMEDOUT with text. Without a limit, the job ends with a line if the peer has
 * finalized and its PE is known: if its pad is in the heap, or in a share of the block that
 * contains this PE's pad. */
int weft_pad_put(const struct weft_pad *pad, int peer);
int weft_pad_wait(const struct weft_pad *pad, int peer);

/* Puts to all peers, then waits for all. */
int weft_pad_barrier(const struct weft_pad *pad);

#endif
