/* SPDX-License-Identifier: BSD-3-Clause */
/* What the driver's test and its kernels say to each other. */
#ifndef TESTS_GPU_DRIVER_PROBE_H
#define TESTS_GPU_DRIVER_PROBE_H

enum { PROBE_TILE = 64 }; /* words, and threads of a block */

/* What a message by bulk copies lacks. */
enum probe_without {
    PROBE_NOTHING,
    PROBE_FENCE_SHARED, /* between the threads' stores and the put */
    PROBE_COMMIT,
    PROBE_WAIT,  /* for what the put writes, not for what it reads alone */
    PROBE_FENCE, /* between the flag and the load */
    PROBE_MBARRIER,
    PROBE_KINDS
};

#endif
