/* SPDX-License-Identifier: BSD-3-Clause */
/* This PE's GPU: which one it is, the opening of it, which is local, and the host's symmetric
 * memory within its reach. */
#ifndef WEFT_DEVICE_BEGIN_H
#define WEFT_DEVICE_BEGIN_H

struct weft_gpu;

/* Opens this PE's GPU, as SHMEMX_DEVICE says, unless it is open: it reaches the host heap and the
 * statics of all PEs then. Local, by any thread; 0 or -errno with text. Every entry that needs a
 * GPU begins with it, before weft_gpu_enter. */
int weft_device_begin(void);

/* Fills in what can be known of this PE's GPU before it is opened. Local. */
int weft_device_inspect(struct weft_gpu *gpu);

/* The host heap has been committed up to here, on all PEs: a GPU that is open comes to reach it. */
void weft_device_heap_grown(void);

/* Closes it: nothing is under way, and what device/open.h brought up is down. */
void weft_device_end(void);

#endif
