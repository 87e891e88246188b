/* SPDX-License-Identifier: BSD-3-Clause */
#include "grid.h"
#include "block.h"
#include "gpu.h"
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Turns of all threads without any progress before the host thread sleeps between them. */
enum { EAGER_TURNS = 64, NAP_NS = 50000, SLEEP_US = 50 };

static unsigned resident[GPUS_MAX]; /* blocks of each GPU, by all streams */

/* --- Blocks --------------------------------------------------------------------------------------
 */

static unsigned sms(void) {
    return (unsigned)call_setting("WEFT_FAKE_SMS", GPU_SMS);
}

static bool take_places(int gpu, unsigned count, unsigned most) {
    if (__atomic_fetch_add(&resident[gpu], count, __ATOMIC_ACQ_REL) + count <= most)
        return true;
    __atomic_fetch_sub(&resident[gpu], count, __ATOMIC_ACQ_REL);
    return false;
}

void grid_enter(int gpu) {
    while (sms() != GPU_SMS && !take_places(gpu, 1, sms()))
        usleep(SLEEP_US);
}

void grid_leave(int gpu) {
    if (sms() != GPU_SMS)
        __atomic_fetch_sub(&resident[gpu], 1, __ATOMIC_ACQ_REL);
}

/* Returns the coordinates of number i. */
static struct kernel_dim at_number(unsigned i, struct kernel_dim size) {
    return (struct kernel_dim){i % size.x, i / size.x % size.y, i / size.x / size.y};
}

static void begin_block(struct grid *grid) {
    struct block *block = malloc(sizeof *block);
    *block = (struct block){.grid = grid, .number = grid->begun, .alive = grid->nthreads};
    block->buffer.random = &grid->random;
    block->cache = &grid->caches[grid->begun / 2];
    block->threads = calloc(grid->nthreads, sizeof *block->threads);
    block->warps = calloc((grid->nthreads + LANES - 1) / LANES, sizeof *block->warps);
    for (unsigned i = 0; i < grid->nthreads; i++) {
        struct thread *thread = &block->threads[i];
        thread->place =
            (struct kernel_place){at_number(i, grid->block_size),
                                  at_number(grid->begun, grid->size), grid->block_size, grid->size};
        thread->block = block;
        thread_warp(thread)->alive++;
        grid->runnable[grid->nrunnable++] = thread;
    }
    if (grid->shared_bytes > 0)
        block->dynamic = shared_new(block, block, grid->shared_bytes, DYNAMIC_ALIGNMENT);
    grid->clusters[grid->begun / grid->cluster_blocks].alive += grid->nthreads;
    grid->blocks[grid->begun++] = block;
    grid->resident++;
}

static void begin_cluster(struct grid *grid) {
    for (unsigned i = 0; i < grid->cluster_blocks; i++)
        begin_block(grid);
}

/* Returns the first block's number of the block's cluster. */
static unsigned cluster_first(const struct block *block) {
    return block->number / block->grid->cluster_blocks * block->grid->cluster_blocks;
}

struct block *block_of_cluster(const struct block *block, unsigned rank) {
    const struct grid *grid = block->grid;
    struct block *other =
        rank < grid->cluster_blocks ? grid->blocks[cluster_first(block) + rank] : NULL;
    if (!other || other->alive == 0)
        thread_fault("block %u of a cluster is not there, or has ended", rank);
    return other;
}

static void end_block(struct block *block) {
    struct shared *next;
    for (struct shared *shared = block->shared; shared; shared = next) {
        next = shared->next;
        free(shared->memory);
        free(shared->behind);
        free(shared);
    }
    async_end(block);
    struct grid *grid = block->grid;
    grid->blocks[block->number] = NULL;
    grid->resident--;
    __atomic_fetch_sub(&resident[grid->gpu], 1, __ATOMIC_ACQ_REL);
    free(block->threads);
    free(block->warps);
    free(block);
}

/* Lets the waiting threads continue, with the knowledge of all of them. */
static void let_run(struct grid *grid, struct thread *threads, unsigned count, int state) {
    struct view all = {0, 0};
    for (unsigned i = 0; i < count; i++)
        view_join(&all, &threads[i].view);
    for (unsigned i = 0; i < count; i++)
        if ((int)threads[i].state == state) {
            threads[i].state = RUNS;
            view_join(&threads[i].view, &all);
            grid->runnable[grid->nrunnable++] = &threads[i];
        }
}

/* A thread that has ended is not waited for. */
static void open_barrier(struct block *block) {
    struct grid *grid = block->grid;
    if (block->alive == 0 || block->arrived < block->alive)
        return;
    block->arrived = 0;
    block->any = block->next_any;
    block->next_any = 0;
    buffer_publish(&block->buffer, BUFFER_ALL, block_owns, grid->gpu);
    let_run(grid, block->threads, grid->nthreads, AT_BARRIER);
}

/* The blocks of a cluster have one cache, so their threads' views have the same times. */
static void open_cluster(struct block *block) {
    struct grid *grid = block->grid;
    unsigned first = cluster_first(block);
    struct cluster *cluster = &grid->clusters[first / grid->cluster_blocks];
    struct view all = {0, 0};
    if (cluster->alive == 0 || cluster->arrived < cluster->alive)
        return;
    cluster->arrived = 0;
    for (unsigned i = 0; i < grid->cluster_blocks * grid->nthreads; i++)
        if (grid->blocks[first + i / grid->nthreads])
            view_join(&all,
                      &grid->blocks[first + i / grid->nthreads]->threads[i % grid->nthreads].view);
    for (unsigned b = first; b < first + grid->cluster_blocks; b++) {
        if (!grid->blocks[b])
            continue;
        view_join(&grid->blocks[b]->threads[0].view, &all);
        buffer_publish(&grid->blocks[b]->buffer, BUFFER_ALL, block_owns, grid->gpu);
        let_run(grid, grid->blocks[b]->threads, grid->nthreads, AT_CLUSTER);
    }
}

void grid_open_named(struct block *block, unsigned id, unsigned count) {
    if (block->named[id] < count)
        return;
    block->named[id] = 0;
    let_run(block->grid, block->threads, block->grid->nthreads, AT_NAMED + (int)id);
}

static void open_warp(struct thread *lane) {
    struct block *block = lane->block;
    struct warp *warp = thread_warp(lane);
    if (warp->alive == 0 || warp->arrived < warp->alive)
        return;
    unsigned first = (unsigned)thread_number(lane) / LANES * LANES;
    unsigned left = block->grid->nthreads - first;
    warp->arrived = 0;
    warp->turn++;
    warp->lanes[warp->turn % 2] = 0;
    buffer_publish(&block->buffer, BUFFER_WARP(first / LANES), block_owns, block->grid->gpu);
    let_run(block->grid, &block->threads[first], left < LANES ? left : LANES, AT_WARP);
}

/* --- The scheduler -------------------------------------------------------------------------------
 */

static void run_thread(void *argument) {
    struct thread *thread = argument;
    const struct grid *grid = thread->block->grid;
    grid->kernel->run(grid->packed);
    thread->state = ENDED;
    fibre_leave(&thread->fibre, true);
}

static void run_on(struct thread *thread) {
    if (!thread->fibre.stack)
        fibre_begin(&thread->fibre, run_thread, thread);
    thread->state = RUNS;
    thread_set(thread);
    fibre_enter(&thread->fibre);
    thread_set(NULL);
}

/* A block without threads is not finished as long as some of its stores are under way. */
static bool is_through(const struct block *block) {
    return block->alive == 0 && block->buffer.n == 0 && block->async.n == 0;
}

static void end_thread(struct thread *thread) {
    struct block *block = thread->block;
    fibre_drop(&thread->fibre);
    thread_end(thread);
    thread_warp(thread)->alive--;
    block->grid->clusters[block->number / block->grid->cluster_blocks].alive--;
    block->alive--;
    open_cluster(block);
    if (block->alive > 0) {
        open_warp(thread);
        open_barrier(block);
        return;
    }
    async_end_threads(block);
    if (is_through(block))
        end_block(block);
}

static void step(struct grid *grid) {
    size_t i = buffer_draw(&grid->random, grid->nrunnable);
    struct thread *thread = grid->runnable[i];
    run_on(thread);
    if (thread->state == POLLS)
        grid->polls++;
    if (thread->state == POLLS || thread->state == RUNS)
        return;
    grid->polls = grid->turns = 0;
    grid->runnable[i] = grid->runnable[--grid->nrunnable];
    if (thread->state == ENDED)
        end_thread(thread);
    else if (thread->state == AT_WARP)
        open_warp(thread);
    else if (thread->state == AT_CLUSTER)
        open_cluster(thread->block);
    else if (thread->state >= AT_NAMED)
        grid_open_named(thread->block, (unsigned)(thread->state - AT_NAMED), thread->named_threads);
    else
        open_barrier(thread->block);
}

static void let_arrive(struct grid *grid) {
    for (unsigned b = 0; b < grid->begun; b++) {
        struct block *block = grid->blocks[b];
        if (!block)
            continue;
        buffer_drain(&block->buffer, ARRIVE_IN);
        async_drain(block, ARRIVE_IN, true);
        if (is_through(block))
            end_block(block);
    }
}

/* A kernel that waits in vain traps, if that is wanted. */
static void look_for_hang(struct grid *grid) {
    struct timespec now;
    if (grid->hang_ms == 0)
        return;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (grid->turns == 0)
        grid->idle_since = now;
    long ms = (now.tv_sec - grid->idle_since.tv_sec) * 1000 +
              (now.tv_nsec - grid->idle_since.tv_nsec) / 1000000;
    if (ms < grid->hang_ms)
        return;
    grid->trapped = true;
    fprintf(stderr, "pretended GPU %d: %zu threads of %s have polled for %ld ms in vain\n",
            grid->gpu, grid->nrunnable, grid->kernel->name, ms);
}

/* All threads wait: others shall run, of other PEs and of other streams. */
static void end_turn(struct grid *grid) {
    const struct timespec nap = {0, NAP_NS};
    look_for_hang(grid);
    grid->polls = 0;
    if (grid->weak)
        let_arrive(grid);
    if (grid->turns++ < EAGER_TURNS)
        sched_yield();
    else
        nanosleep(&nap, NULL);
}

static void run_all(struct grid *grid) {
    while (!grid->trapped && (grid->begun < grid->nblocks || grid->resident > 0)) {
        while (grid->begun < grid->nblocks &&
               take_places(grid->gpu, grid->cluster_blocks, grid->sms))
            begin_cluster(grid);
        if (grid->nrunnable > 0)
            step(grid);
        if (grid->polls >= grid->nrunnable)
            end_turn(grid);
    }
}

/* After a trap no thread runs on. */
static void abandon(struct grid *grid) {
    for (unsigned b = 0; b < grid->begun; b++) {
        struct block *block = grid->blocks[b];
        for (unsigned i = 0; block && i < grid->nthreads; i++) {
            fibre_drop(&block->threads[i].fibre);
            thread_end(&block->threads[i]);
        }
        if (block)
            end_block(block);
    }
}

bool grid_run(const struct kernel *kernel, const void *packed, int gpu,
              const struct grid_shape *shape) {
    static uint64_t launches;
    uint64_t launch = __atomic_fetch_add(&launches, 1, __ATOMIC_RELAXED);
    unsigned nblocks = kernel_volume(shape->blocks), nthreads = kernel_volume(shape->threads);
    struct grid grid = {.kernel = kernel,
                        .sms = sms(),
                        .hang_ms = call_setting("WEFT_FAKE_HANG_MS", 0),
                        .packed = packed,
                        .gpu = gpu,
                        .size = shape->blocks,
                        .block_size = shape->threads,
                        .cluster_blocks = shape->cluster_blocks,
                        .shared_bytes = shape->shared_bytes,
                        .nblocks = nblocks,
                        .nthreads = nthreads};
    grid.random = ((uint64_t)call_setting("WEFT_FAKE_SEED", 0) * 1000003 + (uint64_t)gpu) * 257;
    grid.random += launch;
    grid.weak = call_setting("WEFT_FAKE_WEAK", 0) != 0;
    grid.blocks = calloc(nblocks, sizeof(struct block *));
    grid.clusters = calloc(nblocks, sizeof *grid.clusters);
    grid.caches = calloc((nblocks + 1) / 2, sizeof *grid.caches);
    size_t most = nblocks < grid.sms ? nblocks : grid.sms;
    grid.runnable = calloc(most * nthreads, sizeof(struct thread *));
    run_all(&grid);
    abandon(&grid);
    free(grid.runnable);
    free(grid.caches);
    free(grid.clusters);
    free(grid.blocks);
    return !grid.trapped;
}
