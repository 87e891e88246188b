/* SPDX-License-Identifier: BSD-3-Clause */
/* The GPUs that this process works with: this PE's, and others that blocks of it lie on. Those are
 * opened by the first block, and stay open as long as the job. */
#ifndef WEFT_DEVICE_GPUS_H
#define WEFT_DEVICE_GPUS_H

#include "transport/gpu.h"

/* This PE's GPU as an ordinal. */
enum { WEFT_DEVICE_OWN = -1 };

/* This job works with that GPU from now on: it is open, and kernels run there. By any thread.
 * -EINVAL with text when there is no such GPU. */
int weft_device_gpu_use(int ordinal);

/* The same, and opens it for the caller, who closes it (weft_gpu_close), behind the job, too. */
int weft_device_gpu_open(struct weft_gpu **gpu, int ordinal);

/* The one whose context is current in the calling thread, whose streams the program means then;
 * this PE's where that is none of them. With this PE's open. */
const struct weft_gpu *weft_device_gpu_here(void);

/* Waits for all work of this process on the others, as weft_device_finish on this PE's. */
void weft_device_gpus_finish(void);

/* Closes the others; nothing is under way. */
void weft_device_gpus_close(void);

#endif
