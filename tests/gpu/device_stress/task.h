/* SPDX-License-Identifier: BSD-3-Clause */
/* Structures shared by the host and the kernels of the stress test of calls inside kernels. */
#ifndef TESTS_GPU_DEVICE_STRESS_TASK_H
#define TESTS_GPU_DEVICE_STRESS_TASK_H

#include <stdint.h>

enum {
    STRESS_BLOCKS = 16,   /* at most */
    STRESS_THREADS = 256, /* of a block, at most: whole warps */
    STRESS_MEMBERS = 8,
    STRESS_SLOT = 32 << 10, /* bytes that a block has from each member */
    STRESS_WORDS = 2048,    /* 64-bit words of a block */
    STRESS_BULK = 4 << 10,  /* bytes of shared memory, of whole lines */
    STRESS_PACKETS = 4      /* of a thread in an epoch, at most */
};

/* The operation of a round. */
enum stress_kind {
    STRESS_PUT,    /* a put, and a barrier */
    STRESS_GET,    /* a barrier, and a get */
    STRESS_SIGNAL, /* a put with a signal */
    STRESS_COPY,   /* a copy, a fence or none, and a signal */
    STRESS_WORD,   /* words that are polled */
    STRESS_ATOMIC, /* atomics of all members' threads on the same words */
    STRESS_PACKET,
    STRESS_BULK_PUT, /* a bulk copy, by shared memory */
    STRESS_GRID,     /* a put, and a barrier of grids */
    STRESS_KINDS
};

/* The arrays in the device heap: dest[block][member], source[block], signals[block][member][group],
 * words[block]. All members draw equal rounds from seed and number. */
struct stress_plan {
    uint64_t first; /* number of the first round */
    uint32_t rounds, seed;
    int32_t only; /* this kind alone; -1: all */
    int32_t bulk; /* there are bulk copies */
    char *dest, *source;
    uint64_t *signals, *words;
    struct stress_seen *seen;
};

/* In GPU memory: the checked rounds of blocks, by kind; the number of errors, and the first one. */
struct stress_seen {
    uint64_t checked[STRESS_KINDS];
    uint64_t wrong, claimed, given_up;
    uint64_t round;
    int32_t kind, scope, variant, from;
    uint32_t block, group, bytes, to_shift, from_shift;
    int32_t index;
    uint64_t found, wanted;
};

#endif
