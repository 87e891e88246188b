/* SPDX-License-Identifier: BSD-3-Clause */
/* A rank's view of PyTorch's signal pads, for processors (core/pad.h) and for kernels
 * (transport/pad.cu). The word of (channel, source) in a pad is pad[n * channel + source], which is
 * 0 or 1: put changes the peer's word from 0 to 1, wait changes this rank's word from 1 back to 0.
 */
#ifndef WEFT_BASE_PAD_H
#define WEFT_BASE_PAD_H

#include <stdint.h>

/* The caller has checked the arguments: 0 <= me < n, 0 <= channel. */
struct weft_pad {
    uint32_t *const *pads; /* one per rank */
    int me, n, channel;
    uint64_t timeout_ms; /* 0: wait without limit */
};

enum weft_pad_op { WEFT_PAD_PUT, WEFT_PAD_WAIT, WEFT_PAD_BARRIER };

#endif
