/* SPDX-License-Identifier: BSD-3-Clause */
/* Put and get where a GPU's memory is on one side or both.
 *
 * Errors as in core/route.h. The blocking forms are complete when they return; what a non-blocking
 * one has begun is completed by weft_device_quiet. A failure of the driver ends the job with one
 * line. Which calls come here is decided by core/route.h. */
#ifndef WEFT_DEVICE_RMA_H
#define WEFT_DEVICE_RMA_H

#include "core/rma.h"
#include "device/device.h"

int weft_device_put(void *dest, const void *source, size_t bytes, int pe, bool nbi);
int weft_device_get(void *dest, const void *source, size_t bytes, int pe, bool nbi);

/* An element in GPU memory, whose value the host has or wants. */
int weft_device_put_value(void *dest, const void *value, size_t bytes, int pe);
int weft_device_get_value(void *value, const void *source, size_t bytes, int pe);

int weft_device_put_strided(void *dest, const void *source, const struct weft_strided *shape,
                            int pe);
int weft_device_get_strided(void *dest, const void *source, const struct weft_strided *shape,
                            int pe);
/* A copy between addresses as this PE's GPU has them, on its way. */
void weft_device_enqueue(void *to, const void *from, size_t bytes, int pe);

#endif
