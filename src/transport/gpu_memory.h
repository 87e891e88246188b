/* SPDX-License-Identifier: BSD-3-Clause */
/* One piece of physical GPU memory: made, mapped, shown to other processes, dropped. All local. */
#ifndef WEFT_TRANSPORT_GPU_MEMORY_H
#define WEFT_TRANSPORT_GPU_MEMORY_H

#include "transport/gpu.h"

/* Memory with addresses of its own; `gpu` is who has made it, or is to reach it. */
struct weft_gpu_memory {
    const struct weft_gpu *gpu;
    weft_cu_memory handle;
    weft_cu_address at;
    size_t bytes;
};

/* Makes at least `bytes` of zeroed memory, in granules, at an address of its own. 0 or -errno with
 * text, as all here. */
int weft_gpu_memory_alloc(struct weft_gpu_memory *memory, const struct weft_gpu *gpu, size_t bytes);

/* The address is gone at once; the memory with the last mapping, of whichever process. */
void weft_gpu_memory_free(struct weft_gpu_memory *memory);

/* The steps that windows take one by one. create: of memory->bytes. map: for
 * memory->gpu, whichever GPU's memory it is; but if the owner is given, for those GPUs that are to
 * work there: this one where it can, and the owner itself where it has to. clear, fill with a byte:
 * has happened when it returns. export: a new descriptor, close-on-exec. import: a handle of what
 * another process (or this one) has exported; closes nothing. */
int weft_gpu_memory_create(struct weft_gpu_memory *memory);
int weft_gpu_memory_map(const struct weft_gpu_memory *memory, const struct weft_gpu_peer *owner);
int weft_gpu_memory_clear(const struct weft_gpu *gpu, weft_cu_address at, size_t bytes);
int weft_gpu_memory_fill(const struct weft_gpu *gpu, weft_cu_address at, int value, size_t bytes);
int weft_gpu_memory_export(weft_cu_memory handle, int *fd);
int weft_gpu_memory_import(weft_cu_memory *handle, int fd);

/* Has happened when it returns; on the GPU's stream of host calls. */
int weft_gpu_memory_copy(const struct weft_gpu *gpu, void *to, const void *from, size_t bytes);

/* Whole granules that hold so many bytes. */
size_t weft_gpu_memory_granules(const struct weft_gpu *gpu, size_t bytes);

#endif
