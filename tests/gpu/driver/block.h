/* SPDX-License-Identifier: BSD-3-Clause */
/* A launch under way: its grid, blocks, warps and threads, as the scheduler (grid.c), what threads
 * call (thread.c) and bulk copies (async.c) share them. One thread of the host runs them all, so
 * nothing here is locked. */
#ifndef TESTS_GPU_DRIVER_BLOCK_H
#define TESTS_GPU_DRIVER_BLOCK_H

#include "async.h"
#include "buffer.h"
#include "cache.h"
#include "fibre.h"
#include "module.h"

enum { SHARED_ALIGNMENT = 16, DYNAMIC_ALIGNMENT = 1024, LANES = 32, NAMED_BARRIERS = 16 };
enum { WARPGROUP = 128, WARPGROUPS = 8, GROUP_BARRIERS = NAMED_BARRIERS + WARPGROUPS };

/* With weak memory: one access in PREEMPT_IN lets another thread run first; one in DRAIN_IN, or a
 * turn, lets one store in ARRIVE_IN arrive. */
enum { PREEMPT_IN = 8, DRAIN_IN = 16, ARRIVE_IN = 4 };

struct shared {
    const void *site; /* of its declaration */
    char *memory;
    char *behind; /* as the asynchronous proxy has it, with weak memory; or NULL */
    size_t bytes;
    struct shared *next;
};

/* Values that lanes exchange. They write for one meeting while some still read the previous one. */
struct warp {
    unsigned alive, arrived, turn;
    uint64_t given[2][LANES];
    uint32_t lanes[2]; /* the lanes that have arrived */
};

/* A thread's knowledge of others' stores: the time of its last acquire, in terms of the block's
 * cache, and the part that the asynchronous proxy has been told of. */
struct view {
    uint64_t acquired, proxied;
};

/* A product that a thread has begun, with weak memory: its share of the sums. */
struct product {
    float *sums;
    int nsums, keep;
    uint64_t a, b;
    bool f16, by_rows;
    unsigned group; /* 0: not committed */
};

/* The blocks that run together and reach each other's shared memory. */
struct cluster {
    unsigned alive, arrived; /* threads */
};

struct block {
    struct grid *grid;
    unsigned number;
    unsigned alive, arrived; /* threads: not ended, and of them at the barrier */
    struct shared *shared;
    struct shared *dynamic;         /* one of them, for which the launch has asked, or NULL */
    unsigned named[GROUP_BARRIERS]; /* threads that have arrived, also at those of warpgroups */
    struct thread *threads;
    struct warp *warps;
    uint32_t any; /* of the barrier that is open, and of the next one */
    uint32_t next_any;
    struct buffer buffer;
    struct cache *cache; /* of its multiprocessor, which it shares with another block */
    struct async async;
};

struct thread {
    struct kernel_place place; /* must be first: kernel_place points to it */
    struct fibre fibre;
    struct block *block;
    struct view view;
    unsigned groups;          /* of bulk copies: committed */
    struct product *products; /* under way */
    unsigned nproducts, products_room, product_groups;
    uint32_t **written; /* words of dynamic shared memory that the proxy does not have, if weak */
    unsigned nwritten, written_room;
    unsigned named_threads; /* for which its named barrier waits */
    int state;              /* enum thread_state; at the named barrier i: AT_NAMED + i */
};

/* RUNS: another was to have its turn. */
enum thread_state { RUNS, POLLS, AT_BARRIER, AT_WARP, AT_CLUSTER, ENDED, AT_NAMED };

struct grid {
    const struct kernel *kernel;
    const void *packed;
    int gpu;
    struct kernel_dim size, block_size;
    unsigned cluster_blocks;
    size_t shared_bytes;        /* dynamic */
    unsigned nblocks, nthreads; /* of the launch, and of a block */
    unsigned begun, resident;   /* blocks */
    struct block **blocks;      /* NULL: has ended */
    struct cluster *clusters;
    struct cache *caches; /* of multiprocessors, of two blocks each */
    struct thread **runnable;
    size_t nrunnable;
    uint64_t random;
    size_t polls, turns; /* of this turn; turns since somebody has last got ahead */
    struct timespec idle_since;
    unsigned sms; /* for how many blocks there is room */
    long hang_ms; /* after which the kernel traps; 0: never */
    bool trapped, weak;
};

/* The thread of a grid that runs; NULL elsewhere. */
struct thread *thread_self(void);

/* Sets kernel_place: to no thread, if NULL. */
void thread_set(struct thread *thread);

static inline int thread_number(const struct thread *thread) {
    return (int)(thread - thread->block->threads);
}

static inline struct warp *thread_warp(const struct thread *thread) {
    return &thread->block->warps[thread_number(thread) / LANES];
}

/* The one sees all that the other has seen. */
void view_join(struct view *view, const struct view *other);

/* Returns the address in the shared memory of another block of the cluster that corresponds to one
 * in the dynamic shared memory of this block. */
void *block_there(const struct block *block, struct block *other, const void *at);

/* Returns the block of a cluster, or ends the kernel if that has ended. */
struct block *block_of_cluster(const struct block *block, unsigned rank);

/* Returns the shared memory that has these bytes, or NULL. */
struct shared *block_shared(const struct block *block, const void *at, size_t bytes);

/* Adds memory with arbitrary content, like a GPU's initial memory, to a block. */
struct shared *shared_new(struct block *block, const void *site, size_t bytes, size_t alignment);

/* Frees what a thread has noted. */
void thread_end(struct thread *thread);

/* Anything may happen before an access to memory. */
void thread_before_access(struct thread *thread);

/* Returns whether the memory belongs to this GPU. */
bool block_owns(const void *at, int gpu);

/* Writes a line on stderr for a kernel that does something that a GPU would not tolerate, then
 * traps. */
__attribute__((noreturn, format(printf, 1, 2))) void thread_fault(const char *format, ...);

#endif
