/* SPDX-License-Identifier: BSD-3-Clause */
/* Stream-ordered communication: each call enqueues work on the caller's stream and returns. It may
 * be captured into a graph and replayed.
 *
 * Functions return 0 or -errno with text: -ERANGE if there is no such PE, -EFAULT if an address is
 * not symmetric, -ENODEV if there is no GPU, -ENOTSUP if this cannot be done on streams, -ENOMEM.
 */
#ifndef WEFT_DEVICE_STREAM_H
#define WEFT_DEVICE_STREAM_H

#include "device/device.h"

int weft_stream_put(void *dest, const void *source, size_t bytes, int pe, weft_cu_stream stream);
int weft_stream_get(void *dest, const void *source, size_t bytes, int pe, weft_cu_stream stream);
int weft_stream_signal(uint64_t *sig_addr, uint64_t signal, enum weft_signal_op op, int pe,
                       weft_cu_stream stream);
int weft_stream_put_signal(const struct weft_put_signal *put, int pe, weft_cu_stream stream);
int weft_stream_wait(const uint64_t *sig_addr, int cmp, uint64_t cmp_value, weft_cu_stream stream);

/* The calls to far PEs (device/stream_far.c). The transfer's symmetric side is this PE's address of
 * the object. */
int weft_stream_far_copy(const struct weft_transfer *transfer, int pe, weft_cu_stream stream);
int weft_stream_far_put_signal(const struct weft_put_signal *put, int pe, weft_cu_stream stream);
int weft_stream_far_signal32(int32_t *word, int32_t value, bool add, int pe, weft_cu_stream stream);
int weft_stream_far_quiet(weft_cu_stream stream);
int weft_stream_far_sync(const struct weft_team *team, weft_cu_stream stream);

/* Completes in stream order everything that this PE's host calls and this stream have begun. */
int weft_stream_quiet(weft_cu_stream stream);

/* Prepares calls of a team: opens this PE's GPU if it is the only member. Otherwise the GPUs of all
 * PEs must be up; a team of all PEs brings them up. Returns -ENODEV if they are not, -ENOTSUP if
 * the team has more than WEFT_GPU_MEMBERS_MAX members. Starts the proxy of a team with far members.
 * Collective over the team at its first call; must come before weft_gpu_enter. */
int weft_stream_begin(const struct weft_team *team);

/* Orders memory, and lets no member's stream continue before those of all members have arrived. */
int weft_stream_sync(const struct weft_team *team, weft_cu_stream stream);

/* Enqueues a quiet, then a sync. */
int weft_stream_barrier(const struct weft_team *team, weft_cu_stream stream);

/* Enqueues an operation on signal pads, as in core/pad.h. Opens this PE's GPU if necessary. The
 * caller has checked the arguments. */
int weft_device_pad(enum weft_pad_op op, const struct weft_pad *pad, int peer, void *stream);

/* Enqueues a transfer between this PE and `pe`, whose side is an address returned by
 * weft_stream_near; `staged` is set if that side is GPU memory of a staged PE (weft_device_stages).
 */
int weft_stream_transfer(const struct weft_transfer *transfer, int pe, bool staged,
                         weft_cu_stream stream);

/* Returns in *at the address of pe's copy of a symmetric argument, as weft_device_near does. */
int weft_stream_near(void **at, const char *argument, const void *p, size_t bytes, int pe);

/* An array of this PE, located once for all decisions of a call. */
struct weft_located {
    const char *argument; /* its name in texts */
    const void *p;
    size_t bytes;
    enum { WEFT_LOCATED_DEVICE, WEFT_LOCATED_HOST, WEFT_LOCATED_PRIVATE } kind; /* which heap */
    bool reached; /* kernels of this PE can access it from end to end */
};

/* Locates an array of at least one byte. The driver is asked about both ends of private memory, so
 * the call must be made in the GPU's context. */
struct weft_located weft_stream_locate(const char *argument, const void *p, size_t bytes);

#endif
