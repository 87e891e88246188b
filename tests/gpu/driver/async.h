/* SPDX-License-Identifier: BSD-3-Clause */
/* Bulk copies between a block's shared memory and global memory, which the asynchronous proxy makes
 * while threads go on. With weak memory (WEFT_FAKE_WEAK) each is as late as it may be:
 *
 *   a load   reads global memory, writes and counts at its mbarrier at any time; threads find it
 *            after a wait for it. It may find what a load before it has found, unless
 *            fence.proxy.async stands between an acquire and it.
 *   a store  reads shared memory until bulk_wait_read, and writes until bulk_wait; without these at
 *            any time, also after a signal of the thread, and after the end of the block, which
 *            frees the shared memory.
 *
 * The proxy has shared memory of its own: it reads data that threads have written there after a
 * fence (kernel_fence_async). Without weak memory copies are made at once. */
#ifndef TESTS_GPU_DRIVER_ASYNC_H
#define TESTS_GPU_DRIVER_ASYNC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct block;
enum { ASYNC_FRESH_MAX = 16 };

/* The copies of a block; zero at the start. */
struct async {
    struct async_copy **copies; /* under way */
    unsigned n, room;
    struct async_word *seen;                /* contents that loads have found, or NULL */
    const uint64_t *fresh[ASYNC_FRESH_MAX]; /* mbarriers that the proxy has not seen yet */
    unsigned nfresh;
};

/* Advances one random copy in `of`; lazy ones only if the block is idle. */
void async_drain(struct block *block, size_t of, bool idle);

/* Called when the block has no threads any more: its shared memory is gone. */
void async_end_threads(struct block *block);

/* Frees everything. */
void async_end(struct block *block);

/* Called when the block has stored there: loads no longer return the old content. */
void async_forget(struct async *async, const char *at);

#endif
