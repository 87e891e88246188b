/* SPDX-License-Identifier: BSD-3-Clause */
/* The kinds of memory on either side of a call, and one area of each. */
#ifndef TESTS_GPU_PLACES_H
#define TESTS_GPU_PLACES_H

#include <shmemx.h>
#include "gpu/own_memory.h"

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

static int me, npes;
static unsigned char *area[PLACES]; /* of AREA_BYTES_MAX each */

static inline bool on_gpu(enum place place) {
    return place == DEVICE || place == FOREIGN;
}

/* The program's first call; `stack` has AREA_BYTES_MAX bytes of main's. */
static inline void places_start(unsigned char *stack) {
    static unsigned char statics[AREA_BYTES_MAX] __attribute__((aligned(64)));
    shmem_init();
    gpu_start();
    me = shmem_my_pe(), npes = shmem_n_pes();
    area[DEVICE] = (unsigned char *)shmemx_malloc(SHMEMX_SPACE_DEVICE, AREA_BYTES_MAX);
    area[HEAP] = (unsigned char *)shmem_align(16, AREA_BYTES_MAX);
    area[STATICS] = statics;
    area[PRIVATE] = (unsigned char *)aligned_alloc(64, AREA_BYTES_MAX);
    area[STACK] = stack;
    area[FOREIGN] = own_memory(AREA_BYTES_MAX);
    for (int place = 0; place < PLACES; place++)
        if (!area[place]) {
            fprintf(stderr, "# PE %d: no %s\n", tap_pe, place_names[place]);
            exit(1);
        }
}

/* The program's last; its result is main's. */
static inline int places_finish(void) {
    shmem_free(area[DEVICE]);
    shmem_free(area[HEAP]);
    free(area[PRIVATE]);
    return gpu_finish();
}

#endif
