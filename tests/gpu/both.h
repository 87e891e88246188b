/* SPDX-License-Identifier: BSD-3-Clause */
/* Arrays at the same offsets of the host's memory and of the GPU's, for calls on streams that must
 * have the bits of the host's. */
#ifndef TESTS_GPU_BOTH_H
#define TESTS_GPU_BOTH_H

#include "gpu/on_stream.h"

/* Both of the same size; a test sets `used` to 0 to use them again. */
static char *host_room, *device_room;
static size_t room_bytes, used;

struct both {
    void *host, *device;
    size_t bytes;
};

/* Ends the job if there is no memory. Collective. */
static inline void both_open(size_t bytes) {
    device_room = allocated(shmemx_malloc(SHMEMX_SPACE_DEVICE, bytes));
    host_room = allocated(malloc(bytes));
    room_bytes = bytes;
}

static inline void both_close(void) {
    free(host_room);
}

/* Returns room of `bytes`, which begins `odd` bytes after a multiple of 16, and is poisoned. */
static inline struct both both_new(size_t bytes, size_t odd) {
    struct both both = {host_room + used + odd, device_room + used + odd, bytes};
    used += (bytes + odd + 31) / 16 * 16;
    if (used > room_bytes)
        exit(1);
    memset(both.host, GPU_POISON, bytes);
    gpu_poison(both.device, bytes);
    return both;
}

static inline void both_write(const struct both *both) {
    gpu_write(both->device, both->host, both->bytes);
}

static inline void both_expect(const struct both *both, const char *what) {
    gpu_expect(both->device, both->host, both->bytes, "%s", what);
}

#endif
