/* SPDX-License-Identifier: BSD-3-Clause */
/* For tests of the transport's own functions: the GPU opened as the library opens it, memory of the
 * device heap, and calls with the library's context, which must succeed. */
#ifndef TESTS_GPU_INSIDE_H
#define TESTS_GPU_INSIDE_H

#include "gpu.h"
#include "base/log.h"
#include "device/device.h"

static int me, npes, next; /* next: the PE whose memory this one works on */

#define INSIDE(call)                                                          \
    do {                                                                      \
        struct weft_gpu_scope inside_scope = weft_gpu_enter(weft_device.gpu); \
        int inside_error = (call);                                            \
        weft_gpu_leave(inside_scope);                                         \
        EXPECT(inside_error == 0, "%d: %s", inside_error, weft_fail_text());  \
    } while (0)

static inline void inside_start(void) {
    gpu_start();
    me = shmem_my_pe();
    npes = shmem_n_pes();
    next = (me + 1) % npes;
    if (weft_device_open() < 0)
        gpu_miss(weft_fail_text());
}

static inline void *inside_malloc(size_t bytes) {
    void *p = weft_device_malloc(&weft_device_arena, bytes, 256, true);
    if (!p) {
        fprintf(stderr, "# PE %d: %s\n", me, weft_fail_text());
        exit(1);
    }
    return p;
}

static inline void inside_synchronize(weft_cu_stream stream) {
    INSIDE(weft_gpu_synchronize(stream));
}

#endif
