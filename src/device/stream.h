/* SPDX-License-Identifier: BSD-3-Clause */
/* Stream-ordered communication: each call enqueues work on the caller's stream and returns. It may
 * be captured into a graph and replayed.
 *
 * 0 or -errno with text: -ERANGE no such PE, -EFAULT not symmetric, -ENODEV no GPU. */
#ifndef WEFT_DEVICE_STREAM_H
#define WEFT_DEVICE_STREAM_H

#include "device/device.h"

int weft_stream_put(void *dest, const void *source, size_t bytes, int pe, weft_cu_stream stream);
int weft_stream_get(void *dest, const void *source, size_t bytes, int pe, weft_cu_stream stream);
int weft_stream_signal(uint64_t *sig_addr, uint64_t signal, enum weft_signal_op op, int pe,
                       weft_cu_stream stream);
int weft_stream_put_signal(const struct weft_put_signal *put, int pe, weft_cu_stream stream);
int weft_stream_wait(const uint64_t *sig_addr, int cmp, uint64_t cmp_value, weft_cu_stream stream);

/* The same to far PEs (device/stream_far.c); the transfer's symmetric side is by its address here.
 */
int weft_stream_far_copy(const struct weft_transfer *transfer, int pe, weft_cu_stream stream);
int weft_stream_far_put_signal(const struct weft_put_signal *put, int pe, weft_cu_stream stream);
int weft_stream_far_signal32(int32_t *word, int32_t value, bool add, int pe, weft_cu_stream stream);
int weft_stream_far_quiet(weft_cu_stream stream);
int weft_stream_far_sync(const struct weft_team *team, weft_cu_stream stream);

/* Behind it, what this PE's host calls and this stream have begun is complete (quiet) or ordered.
 */
int weft_stream_quiet(weft_cu_stream stream);

/* What calls of a team need: this PE's GPU, or, where there are several members, those of all PEs.
 * Collective over the team when it is the first of them; before weft_gpu_enter. */
int weft_stream_begin(const struct weft_team *team);

/* Orders memory, and no stream goes on before those of all members have come. */
int weft_stream_sync(const struct weft_team *team, weft_cu_stream stream);

/* Quiet and sync. */
int weft_stream_barrier(const struct weft_team *team, weft_cu_stream stream);

/* Signal pads, as core/pad.h has them. It opens this PE's GPU if need be; arguments have been
 * checked.
 */
int weft_device_pad(enum weft_pad_op op, const struct weft_pad *pad, int peer, void *stream);

/* A transfer between here and `pe`, whose side is as weft_stream_near gives it: in GPU memory of a
 * PE that is staged (weft_device_stages), or not. */
int weft_stream_transfer(const struct weft_transfer *transfer, int pe, bool staged,
                         weft_cu_stream stream);

/* Where `pe` has its copy of a symmetric argument, as weft_device_near. */
int weft_stream_near(void **at, const char *argument, const void *p, size_t bytes, int pe);

#endif
