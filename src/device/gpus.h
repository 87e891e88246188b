/* SPDX-License-Identifier: BSD-3-Clause */
/* The GPUs that this process works with: this PE's, and others that blocks of it lie on. Those are
 * opened by the first block, and stay open as long as the job. */
#ifndef WEFT_DEVICE_GPUS_H
#define WEFT_DEVICE_GPUS_H

#include "transport/gpu.h"

/* This PE's GPU as an ordinal. */
enum { WEFT_DEVICE_OWN = -1 };

/* Opens a GPU for the caller, who closes it (weft_gpu_close); kernels run there as long as the job.
 * By any thread. -EINVAL with text when there is no such GPU. */
int weft_device_gpu_open(struct weft_gpu **gpu, int ordinal, const char *call);

/* The one whose context is current in the calling thread, whose streams the program means then;
 * this PE's where that is none of them. With this PE's open. */
const struct weft_gpu *weft_device_gpu_here(void);

/* Closes the others; nothing is under way. */
void weft_device_gpus_close(void);

#endif
