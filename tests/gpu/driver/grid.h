/* SPDX-License-Identifier: BSD-3-Clause */
/* A launch as blocks of threads: each thread a fibre, all of a launch in the thread of its stream,
 * in an order drawn from WEFT_FAKE_SEED. A thread runs until it waits: at a barrier of its block,
 * or because it polls.
 *
 * As many blocks are resident on a GPU as it has multiprocessors (WEFT_FAKE_SMS), over all kernels
 * of the process; the next begins when one has ended. So a grid that needs more at once hangs, as
 * it may on a real GPU. */
#ifndef TESTS_GPU_DRIVER_GRID_H
#define TESTS_GPU_DRIVER_GRID_H

#include "module.h"

/* The sizes of a launch. The blocks of a cluster begin together; it has 1 or 2. */
struct grid_shape {
    struct kernel_dim blocks, threads;
    unsigned cluster_blocks;
    size_t shared_bytes; /* dynamic shared memory of a block */
};

/* Runs all threads. Returns false if one has trapped. */
bool grid_run(const struct kernel *kernel, const void *packed, int gpu,
              const struct grid_shape *shape);

struct block;

/* Opens a named barrier of a block if `count` threads are there. */
void grid_open_named(struct block *block, unsigned id, unsigned count);

/* Within a thread of a grid: ends the kernel. Returns at once elsewhere. */
void grid_trap(void);

/* A kernel of one thread takes a multiprocessor in between, if WEFT_FAKE_SMS says how many there
 * are; grid_enter waits for it. */
void grid_enter(int gpu);
void grid_leave(int gpu);

#endif
