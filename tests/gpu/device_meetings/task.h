/* SPDX-License-Identifier: BSD-3-Clause */
/* Structures shared by the host and the kernels of the test of meetings. */
#ifndef TESTS_GPU_DEVICE_MEETINGS_TASK_H
#define TESTS_GPU_DEVICE_MEETINGS_TASK_H

#include "gpu/found.h"

enum meeting_kind {
    MEET_BARRIER_B,
    MEET_HALVES_B,
    MEET_BARRIER_W, /* each warp on a channel of its own */
    MEET_HALVES_W,
    MEET_BARRIER_T, /* one thread for its block, which syncs */
    MEET_HALVES_T,
    MEET_MIXED, /* members by threads, warps and blocks */
    MEET_GRID,
    MEET_GRID_AGAIN, /* some in a row */
    MEET_KINDS
};

/* Rounds first + 1 to first + count. In each round every thread stores a word to its place at every
 * member, [block][member][thread], and after the meeting reads another thread's. Symmetric. */
struct meetings_rounds {
    uint32_t first, count;
    uint32_t blocks[8]; /* of the members' grids; equal except in these two tests */
    int32_t kind;
    uint64_t *words;
    struct device_found *found;
};

/* Calls with packets; their numbers continue from call to call. */
struct meetings_packets {
    uint32_t seed, count;
    uint32_t bcast; /* 1: equal for all members */
    struct device_found *found;
};

#endif
