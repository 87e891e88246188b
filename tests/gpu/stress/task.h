/* SPDX-License-Identifier: BSD-3-Clause */
/* Structures shared by the host and the kernels of the stress test. */
#ifndef TESTS_GPU_STRESS_TASK_H
#define TESTS_GPU_STRESS_TASK_H

#include <stdint.h>

enum stress_operation {
    STRESS_ALL_REDUCE,
    STRESS_ALL_GATHER,
    STRESS_REDUCE_SCATTER,
    STRESS_ALL_TO_ALL,
    STRESS_BROADCAST,
    STRESS_OPERATIONS,
    STRESS_NONE = -1
};

enum { STRESS_GUARD_BYTES = 32 }; /* after the memory that a call writes; they must not change */

/* A call of this member, as weft.h has it. Its data are functions of the seed, the call's number,
 * the member and the index. */
struct stress_task {
    int32_t operation, dtype, op, root;
    int32_t me, n;
    int32_t guarded; /* nothing of the call's follows dest */
    uint32_t seed;
    uint64_t nelems, call; /* the number is that of a counter, too */
    char *source, *dest;
};

/* In GPU memory: the number of errors, and the first one. */
struct stress_found {
    uint64_t wrong, checked; /* elements, and calls */
    uint64_t claimed;
    uint64_t call, index, found, wanted;
    struct stress_task task;
};

/* Packets as they arrived, partly new. */
struct stress_torn {
    uint64_t seen, quads, halves; /* all; 16 bytes, or the packet, in two parts; so are 8 */
};

/* One round of packets a lane, in a ring of slots. */
enum { STRESS_RING = 64, STRESS_ACKNOWLEDGED = 16 };

#endif
