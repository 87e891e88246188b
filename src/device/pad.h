/* SPDX-License-Identifier: BSD-3-Clause */
/* Signal pads in the order of a stream: core/pad.h for GPUs. */
#ifndef WEFT_DEVICE_PAD_H
#define WEFT_DEVICE_PAD_H

#include "base/pad.h"

/* Opens this PE's GPU if need be. Arguments have been checked; 0 or -errno with text. */
int weft_device_pad(enum weft_pad_op op, const struct weft_pad *pad, int peer, void *stream,
                    const char *call);

#endif
