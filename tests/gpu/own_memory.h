/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of the GPU that the program has from CUDA, not from the library. */
#ifndef TESTS_GPU_OWN_MEMORY_H
#define TESTS_GPU_OWN_MEMORY_H

#include "gpu/gpu.h"

/* Kept until the end. */
static inline unsigned char *own_memory(size_t bytes) {
    struct weft_cu_memory_properties properties = {
        .type = WEFT_CU_MEMORY_PINNED, .location = {WEFT_CU_LOCATION_DEVICE, gpu_device}};
    struct weft_cu_access access = {{WEFT_CU_LOCATION_DEVICE, gpu_device},
                                    WEFT_CU_ACCESS_READ_WRITE};
    size_t granule;
    weft_cu_memory memory;
    weft_cu_address at;
    gpu_enter();
    GPU(cuMemGetAllocationGranularity(&granule, &properties, WEFT_CU_GRANULARITY_RECOMMENDED));
    bytes = (bytes + granule - 1) / granule * granule;
    GPU(cuMemCreate(&memory, bytes, &properties, 0));
    GPU(cuMemAddressReserve(&at, bytes, 0, 0, 0));
    GPU(cuMemMap(at, bytes, 0, memory, 0));
    GPU(cuMemRelease(memory));
    GPU(cuMemSetAccess(at, bytes, &access, 1));
    gpu_leave();
    return (unsigned char *)at;
}

#endif
