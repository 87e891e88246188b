/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that all PEs make of a window, or none. */
#ifndef WEFT_DEVICE_EXTENT_H
#define WEFT_DEVICE_EXTENT_H

#include <stddef.h>
#include "transport/gpu_window.h"

/* Whether all PEs have come so far: 0, this PE's own error with its text, or that of another.
 * Collective over WORLD. */
int weft_device_agree(int error);

/* One more extent of `bytes` of a window on every PE, or on none. Collective over WORLD. */
int weft_device_extend(struct weft_gpu_window *window, size_t bytes);

#endif
