/* SPDX-License-Identifier: BSD-3-Clause */
/* A piece of physical GPU memory: creation, mapping, export to other processes, release. All
 * functions are local. */
#ifndef WEFT_TRANSPORT_GPU_MEMORY_H
#define WEFT_TRANSPORT_GPU_MEMORY_H

#include "transport/gpu.h"

/* Memory at an address of its own; `gpu` has allocated it, or is to access it. */
struct weft_gpu_memory {
    const struct weft_gpu *gpu;
    weft_cu_memory handle;
    weft_cu_address at;
    size_t bytes;
};

/* Allocates at least `bytes` of zeroed memory, in granules, at an address of its own. Returns 0 or
 * -errno with text, as all functions here. */
int weft_gpu_memory_alloc(struct weft_gpu_memory *memory, const struct weft_gpu *gpu, size_t bytes);

/* Frees the address at once, and the memory when no process maps it any more. */
void weft_gpu_memory_free(struct weft_gpu_memory *memory);

/* The single steps, for windows. create allocates memory->bytes. map maps memory of any GPU for
 * memory->gpu. With an `owner`, memory->gpu gets access unless the owner's GPU is staged
 * (weft_gpu_peer_staged), and the owner's GPU gets access, too, if it is visible here and
 * memory->gpu has no atomics there. clear, and fill with a byte, are complete on return. export
 * returns a new descriptor, close-on-exec. import makes a handle from a descriptor that any process
 * has exported; it does not close it. */
int weft_gpu_memory_create(struct weft_gpu_memory *memory);
int weft_gpu_memory_map(const struct weft_gpu_memory *memory, const struct weft_gpu_peer *owner);
int weft_gpu_memory_clear(const struct weft_gpu *gpu, weft_cu_address at, size_t bytes);
int weft_gpu_memory_fill(const struct weft_gpu *gpu, weft_cu_address at, int value, size_t bytes);
int weft_gpu_memory_export(weft_cu_memory handle, int *fd);
int weft_gpu_memory_import(weft_cu_memory *handle, int fd);

/* Copies on the GPU's stream of host calls; complete on return. */
int weft_gpu_memory_copy(const struct weft_gpu *gpu, void *to, const void *from, size_t bytes);

/* Rounds a size up to whole granules. */
size_t weft_gpu_memory_granules(const struct weft_gpu *gpu, size_t bytes);

#endif
