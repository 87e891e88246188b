/* SPDX-License-Identifier: BSD-3-Clause */
/* Structures shared by the driver's test and its kernels. */
#ifndef TESTS_GPU_DRIVER_PROBE_H
#define TESTS_GPU_DRIVER_PROBE_H

enum { PROBE_TILE = 64 }; /* words, and threads of a block */

/* A part that is omitted from a message with bulk copies. */
enum probe_without {
    PROBE_NOTHING,
    PROBE_FENCE_SHARED, /* between the threads' stores and the put */
    PROBE_COMMIT,
    PROBE_WAIT,  /* for the put's writes, rather than for its reads only */
    PROBE_FENCE, /* between the flag and the load */
    PROBE_MBARRIER,
    PROBE_KINDS
};

#endif
