/* SPDX-License-Identifier: BSD-3-Clause */
/* Blocks and shares in the memory of GPUs (core/share_space.h). */
#ifndef WEFT_DEVICE_SHARE_H
#define WEFT_DEVICE_SHARE_H

#include "core/share_space.h"

extern const struct weft_share_space weft_device_share;

#endif
