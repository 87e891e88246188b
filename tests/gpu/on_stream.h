/* SPDX-License-Identifier: BSD-3-Clause */
/* For tests of the public calls on streams: calls and allocations that must succeed. */
#ifndef TESTS_GPU_ON_STREAM_H
#define TESTS_GPU_ON_STREAM_H

#include <shmemx.h>
#include <weft.h>
#include "expect.h"
#include "gpu/gpu.h"

/* shmemx_ need not be written: ON(putmem_on_stream(dest, source, bytes, pe, stream)). */
#define ON(call)                                                            \
    do {                                                                    \
        int rc = shmemx_##call;                                             \
        EXPECT(rc == 0, "shmemx_" #call ": %d: %s", rc, weft_last_error()); \
    } while (0)

/* Returns p, or ends the job if it is NULL. */
static inline void *allocated(void *p) {
    if (p)
        return p;
    fprintf(stderr, "# PE %d: no memory: %s\n", tap_pe, weft_last_error());
    shmem_global_exit(1);
}

#endif
