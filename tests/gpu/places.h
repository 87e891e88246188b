/* SPDX-License-Identifier: BSD-3-Clause */
/* The kinds of memory that a call can meet on either side, and one area of each. */
#ifndef TESTS_GPU_PLACES_H
#define TESTS_GPU_PLACES_H

#include <shmemx.h>
#include "gpu/gpu.h"

enum place {
    DEVICE, /* symmetric ones first */
    HEAP,
    STATICS,
    SYMMETRIC_PLACES,
    PRIVATE = SYMMETRIC_PLACES, /* of malloc */
    STACK,
    FOREIGN, /* GPU memory of the program's own */
    PLACES
};
static const char *const place_names[] = {
    "device heap", "host heap", "statics", "malloc's memory", "stack", "CUDA memory of its own",
};

enum { AREA_BYTES_MAX = 64 << 10 };

/* Areas of one kind each; two of a kind never overlap. */
struct areas {
    unsigned char *area[PLACES];
};

static inline bool on_gpu(enum place place) {
    return place == DEVICE || place == FOREIGN;
}

/* Never given back: the process ends. */
static inline void *foreign_make(size_t bytes) {
    enum { GRANULE = 2 << 20 };
    struct weft_cu_memory_properties properties = {
        .type = WEFT_CU_MEMORY_PINNED, .location = {WEFT_CU_LOCATION_DEVICE, gpu_device}};
    struct weft_cu_access access = {properties.location, WEFT_CU_ACCESS_READ_WRITE};
    size_t whole = (bytes + GRANULE - 1) / GRANULE * GRANULE;
    weft_cu_memory memory;
    weft_cu_address at;
    gpu_enter();
    GPU(cuMemCreate(&memory, whole, &properties, 0));
    GPU(cuMemAddressReserve(&at, whole, 0, 0, 0));
    GPU(cuMemMap(at, whole, 0, memory, 0));
    GPU(cuMemRelease(memory));
    GPU(cuMemSetAccess(at, whole, &access, 1));
    gpu_leave();
    return (void *)at;
}

/* `statics` and `stack` are the caller's, of AREA_BYTES_MAX at least. Collective. */
static inline struct areas areas_make(void *statics, void *stack) {
    struct areas areas = {{
        [DEVICE] = (unsigned char *)shmemx_malloc(SHMEMX_SPACE_DEVICE, AREA_BYTES_MAX),
        [HEAP] = (unsigned char *)shmem_align(16, AREA_BYTES_MAX),
        [STATICS] = (unsigned char *)statics,
        [PRIVATE] = (unsigned char *)aligned_alloc(64, AREA_BYTES_MAX),
        [STACK] = (unsigned char *)stack,
        [FOREIGN] = (unsigned char *)foreign_make(AREA_BYTES_MAX),
    }};
    for (int place = 0; place < PLACES; place++)
        if (!areas.area[place]) {
            fprintf(stderr, "# PE %d: no %s\n", tap_pe, place_names[place]);
            exit(1);
        }
    return areas;
}

static inline void areas_drop(struct areas *areas) {
    shmem_free(areas->area[DEVICE]);
    shmem_free(areas->area[HEAP]);
    free(areas->area[PRIVATE]);
}

#endif
