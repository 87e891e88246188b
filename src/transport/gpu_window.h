/* SPDX-License-Identifier: BSD-3-Clause */
/* Windows of GPU memory: one slot per PE, in one range of addresses.
 *
 * alloc and commit are local: they reserve addresses, and create memory in this PE's slot. attach
 * maps a peer's extent from the descriptor that the peer exported. Nothing here communicates.
 * Memory is added in extents, each of which is committed at once and has one descriptor. */
#ifndef WEFT_TRANSPORT_GPU_WINDOW_H
#define WEFT_TRANSPORT_GPU_WINDOW_H

#include "weft/addr.h"
#include "transport/gpu.h"

#define WEFT_GPU_EXTENTS_MAX 32

struct weft_gpu_window {
    const struct weft_gpu *gpu; /* allocates this PE's slot; accesses all slots but staged ones */
    struct weft_window window;  /* window.bytes: committed and attached by all members */
    size_t slot_bytes;          /* 0: there is no window */
    uint32_t mine;
    unsigned nextents;
    struct weft_gpu_extent {
        size_t offset, bytes;
    } extents[WEFT_GPU_EXTENTS_MAX];
};

/* Reserves `count` slots of slot_bytes (rounded up to a power of two, at least a granule). The
 * window must have its GPU, and `mine`, this PE's slot, set. */
int weft_gpu_window_alloc(struct weft_gpu_window *window, uint32_t count, size_t slot_bytes);

/* Creates `bytes` of zeroed memory (rounded up to granules) after the last extent of this PE's
 * slot. *fd is a new descriptor for it, close-on-exec, for the peers; the caller closes it. Returns
 * 0, -ENOMEM if the GPU has no memory left, -ENOSPC if the slot or the list of extents is full, or
 * another error of the driver. */
int weft_gpu_window_commit(struct weft_gpu_window *window, size_t bytes, int *fd);

/* Maps the last extent of the member in `slot`, for the GPUs that work there (see `owner` in
 * transport/gpu_memory.h). The caller still has to close fd. */
int weft_gpu_window_attach(struct weft_gpu_window *window, uint32_t slot, int fd,
                           const struct weft_gpu_peer *owner);

/* Replaces a commit if all members have made an extent of `bytes`, in whole granules, elsewhere.
 * This PE's extent is then attached like the others. */
void weft_gpu_window_expect(struct weft_gpu_window *window, size_t bytes);

/* Removes the last extent from all slots, because not all members could commit or attach it. */
void weft_gpu_window_retract(struct weft_gpu_window *window);

/* Returns the end of the last extent that begins before `used`. */
size_t weft_gpu_window_end_of(const struct weft_gpu_window *window, size_t used);

/* Removes all extents from `end` on, which must not be in use. */
void weft_gpu_window_shrink(struct weft_gpu_window *window, size_t end);

/* Makes the last extent part of the window, when all members have it. */
void weft_gpu_window_show(struct weft_gpu_window *window);

/* Unmaps all extents and frees the addresses. This PE's memory lives on as long as peers have it
 * mapped. Local. */
void weft_gpu_window_free(struct weft_gpu_window *window);

#endif
