/* SPDX-License-Identifier: BSD-3-Clause */
/* The driver keeps physical memory alive as long as any process has a handle or a mapping of it. */
#include "transport/gpu_memory.h"
#include <fcntl.h>
#include "base/size.h"

size_t weft_gpu_memory_granules(const struct weft_gpu *gpu, size_t bytes) {
    return weft_round_up(bytes, gpu->granularity);
}

int weft_gpu_memory_create(struct weft_gpu_memory *memory) {
    struct weft_cu_memory_properties properties = weft_gpu_memory_properties(memory->gpu);
    return weft_cuda_check(weft_cuda.cuMemCreate(&memory->handle, memory->bytes, &properties, 0),
                           "cuMemCreate");
}

static struct weft_cu_access device_access(weft_cu_device device) {
    return (struct weft_cu_access){.location = {WEFT_CU_LOCATION_DEVICE, device},
                                   .flags = WEFT_CU_ACCESS_READ_WRITE};
}

/* Stores the devices for which memory is mapped, and returns their number, at most two. */
static size_t workers_find(struct weft_cu_access *workers, const struct weft_gpu *gpu,
                           const struct weft_gpu_peer *owner) {
    weft_cu_device device = gpu->device;
    size_t count = 0;
    if (!owner || !weft_gpu_peer_staged(owner))
        workers[count++] = device_access(gpu->device);
    if (owner && owner->ordinal >= 0 && !owner->atomics &&
        weft_cuda.cuDeviceGet(&device, owner->ordinal) == WEFT_CU_SUCCESS)
        workers[count++] = device_access(device);
    return count;
}

int weft_gpu_memory_map(const struct weft_gpu_memory *memory, const struct weft_gpu_peer *owner) {
    struct weft_cu_access workers[2];
    size_t count = workers_find(workers, memory->gpu, owner);
    int error = weft_cuda_check(weft_cuda.cuMemMap(memory->at, memory->bytes, 0, memory->handle, 0),
                                "cuMemMap");
    if (error)
        return error;
    error = weft_cuda_check(weft_cuda.cuMemSetAccess(memory->at, memory->bytes, workers, count),
                            "cuMemSetAccess (is there peer access between the GPUs?)");
    if (error)
        weft_cuda.cuMemUnmap(memory->at, memory->bytes);
    return error;
}

int weft_gpu_memory_fill(const struct weft_gpu *gpu, weft_cu_address at, int value, size_t bytes) {
    int error = weft_cuda.cuMemsetD8Async(at, (unsigned char)value, bytes, gpu->stream);
    if (error == 0)
        error = weft_cuda.cuStreamSynchronize(gpu->stream);
    return weft_cuda_check(error, "cuMemsetD8Async");
}

int weft_gpu_memory_clear(const struct weft_gpu *gpu, weft_cu_address at, size_t bytes) {
    return weft_gpu_memory_fill(gpu, at, 0, bytes);
}

int weft_gpu_memory_copy(const struct weft_gpu *gpu, void *to, const void *from, size_t bytes) {
    int error = weft_cuda.cuMemcpyAsync((uintptr_t)to, (uintptr_t)from, bytes, gpu->stream);
    return error ? weft_cuda_check(error, "cuMemcpyAsync") : weft_gpu_synchronize(gpu->stream);
}

int weft_gpu_memory_export(weft_cu_memory handle, int *fd) {
    int error = weft_cuda.cuMemExportToShareableHandle(fd, handle, WEFT_CU_HANDLE_DESCRIPTOR, 0);
    if (error)
        return weft_cuda_check(error, "cuMemExportToShareableHandle");
    fcntl(*fd, F_SETFD, FD_CLOEXEC);
    return 0;
}

int weft_gpu_memory_import(weft_cu_memory *handle, int fd) {
    return weft_cuda_check(weft_cuda.cuMemImportFromShareableHandle(handle, (void *)(intptr_t)fd,
                                                                    WEFT_CU_HANDLE_DESCRIPTOR),
                           "cuMemImportFromShareableHandle");
}

static int memory_place(struct weft_gpu_memory *memory) {
    int error = weft_cuda_check(weft_cuda.cuMemAddressReserve(&memory->at, memory->bytes, 0, 0, 0),
                                "cuMemAddressReserve");
    if (error)
        return error;
    error = weft_gpu_memory_map(memory, NULL);
    if (error)
        weft_cuda.cuMemAddressFree(memory->at, memory->bytes);
    return error;
}

int weft_gpu_memory_alloc(struct weft_gpu_memory *memory, const struct weft_gpu *gpu,
                          size_t bytes) {
    *memory = (struct weft_gpu_memory){.gpu = gpu, .bytes = weft_gpu_memory_granules(gpu, bytes)};
    int error = weft_gpu_memory_create(memory);
    if (error)
        return error;
    error = memory_place(memory);
    if (error)
        weft_cuda.cuMemRelease(memory->handle);
    else if ((error = weft_gpu_memory_clear(gpu, memory->at, memory->bytes)) != 0)
        weft_gpu_memory_free(memory);
    return error;
}

void weft_gpu_memory_free(struct weft_gpu_memory *memory) {
    weft_cuda.cuMemUnmap(memory->at, memory->bytes);
    weft_cuda.cuMemAddressFree(memory->at, memory->bytes);
    weft_cuda.cuMemRelease(memory->handle);
}
