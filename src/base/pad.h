/* SPDX-License-Identifier: BSD-3-Clause */
/* A rank's view of PyTorch's signal pads, the same for processors (core/pad.h) and for kernels
 * (transport/pad.cu). The word of (channel, source) in a pad is pad[n * channel + source], 0 or 1:
 * put takes it from 0 to 1 at the peer, wait takes the own one back from 1 to 0. */
#ifndef WEFT_BASE_PAD_H
#define WEFT_BASE_PAD_H

#include <stdint.h>

/* Arguments have been checked: 0 <= me < n, 0 <= channel. */
struct weft_pad {
    uint32_t *const *pads; /* of each rank */
    int me, n, channel;
    uint64_t timeout_ms; /* 0: for ever */
};

enum weft_pad_op { WEFT_PAD_PUT, WEFT_PAD_WAIT, WEFT_PAD_BARRIER };

#endif
