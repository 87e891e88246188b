/* SPDX-License-Identifier: BSD-3-Clause */
/* Windows of GPU memory: one slot a PE, in one range of addresses.
 *
 * alloc and commit are local: they reserve addresses, and create memory in the own slot. attach
 * maps a peer's extent from the descriptor it exported. Nothing here talks to anyone. Memory comes
 * in extents, which are all of the size that was committed at once; each is one descriptor. */
#ifndef WEFT_TRANSPORT_GPU_WINDOW_H
#define WEFT_TRANSPORT_GPU_WINDOW_H

#include "weft/addr.h"
#include "transport/gpu.h"

#define WEFT_GPU_EXTENTS_MAX 32

struct weft_gpu_window {
    const struct weft_gpu *gpu; /* who makes the own slot, and reaches all */
    struct weft_window window;  /* window.bytes: what all members have committed and attached */
    size_t slot_bytes;          /* 0: there is none */
    uint32_t mine;
    unsigned nextents;
    struct weft_gpu_extent {
        size_t offset, bytes;
    } extents[WEFT_GPU_EXTENTS_MAX];
};

/* Reserves `count` slots of slot_bytes (rounded up to a power of two, at least a granule), for a
 * window that has its GPU, and `mine`, this PE's slot. */
int weft_gpu_window_alloc(struct weft_gpu_window *window, uint32_t count, size_t slot_bytes);

/* Creates `bytes` of zeroed memory (rounded up to granules) behind the last extent of the own slot.
 * *fd is a new descriptor of it, close-on-exec, for the peers; the caller closes it. -ENOMEM when
 * the GPU has none left, -ENOSPC when the slot or the list of extents is full. */
int weft_gpu_window_commit(struct weft_gpu_window *window, size_t bytes, int *fd);

/* Maps the last extent of the member in `slot`, for the GPUs that work there
 * (transport/gpu_memory.h has them by `owner`). Consumes nothing: the caller closes fd. */
int weft_gpu_window_attach(struct weft_gpu_window *window, uint32_t slot, int fd,
                           const struct weft_gpu_peer *owner);

/* Stands in for a commit if all members have made an extent of `bytes`, whole granules, elsewhere.
 * The own one is attached like the others then. */
void weft_gpu_window_expect(struct weft_gpu_window *window, size_t bytes);

/* Takes the last extent back, own and peers': when not all members could follow. */
void weft_gpu_window_retract(struct weft_gpu_window *window);

/* The bytes up to the end of the last extent that begins before `used`. */
size_t weft_gpu_window_end_of(const struct weft_gpu_window *window, size_t used);

/* Takes back all extents from `end` on, which nobody uses any more. */
void weft_gpu_window_shrink(struct weft_gpu_window *window, size_t end);

/* The last extent is there for all. */
void weft_gpu_window_show(struct weft_gpu_window *window);

/* Unmaps what is mapped and gives the addresses back. The memory of this PE lives on where peers
 * still have it mapped. Local. */
void weft_gpu_window_free(struct weft_gpu_window *window);

#endif
