/* SPDX-License-Identifier: BSD-3-Clause */
/* Structures shared by the host and the kernels of the test of bulk copies. */
#ifndef TESTS_GPU_DEVICE_BULK_TASK_H
#define TESTS_GPU_DEVICE_BULK_TASK_H

#include "gpu/found.h"

enum { BULK_TILE = 1024, BULK_THREADS = 64 }; /* bytes of a tile, threads of a block */

/* Rounds first + 1 to first + count of tiles from every member to every one. Symmetric: [block]
 * [member] of BULK_TILE bytes, and words. */
struct bulk_rounds {
    uint32_t seed, first, count;
    char *landing;
    uint64_t *sig, *acks;
    struct device_found *found;
};

/* Sums of BULK_TILE bytes of one type, by all members at each. */
enum bulk_type { BULK_F32, BULK_F16, BULK_BF16, BULK_U32, BULK_U64, BULK_TYPES };

#endif
