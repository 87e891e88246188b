/* SPDX-License-Identifier: BSD-3-Clause */
#include "grid.h"
#include "fibre.h"
#include "gpu.h"
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Turns of all threads without any progress before the host thread sleeps between them. */
enum { SHARED_ALIGNMENT = 16, EAGER_TURNS = 64, NAP_NS = 50000 };

struct shared {
    const void *site; /* where it is declared */
    void *memory;
    struct shared *next;
};

struct block {
    struct grid *grid;
    unsigned alive, arrived; /* threads: not ended, and of them at the barrier */
    struct shared *shared;
    struct thread *threads;
};

struct thread {
    struct kernel_place place; /* first: what kernel_place points to */
    struct fibre fibre;
    struct block *block;
    enum { RUNS, POLLS, AT_BARRIER, ENDED } state;
};

struct grid {
    const struct kernel *kernel;
    const void *packed;
    int gpu;
    unsigned nblocks, nthreads; /* of the launch, and of a block */
    unsigned begun, resident;   /* blocks */
    struct block **blocks;      /* NULL: has ended */
    struct thread **runnable;
    size_t nrunnable;
    uint64_t random;
    size_t polls; /* since somebody has last got ahead */
    bool trapped;
};

static const struct kernel_place alone = {{0, 0, 0}, {0, 0, 0}, {1, 1, 1}, {1, 1, 1}};
__thread const struct kernel_place *kernel_place = &alone;
static unsigned resident[GPUS_MAX]; /* blocks of each GPU, by all streams */

static struct thread *self(void) {
    return kernel_place == &alone ? NULL : (struct thread *)(uintptr_t)kernel_place;
}

static size_t draw(struct grid *grid, size_t limit) {
    grid->random = grid->random * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (size_t)(grid->random >> 33) % limit;
}

/* --- Blocks --------------------------------------------------------------------------------------
 */

static void run_thread(void *argument) {
    struct thread *thread = argument;
    const struct grid *grid = thread->block->grid;
    grid->kernel->run(grid->packed);
    thread->state = ENDED;
    fibre_leave(&thread->fibre, true);
}

static unsigned sms(void) {
    return (unsigned)call_setting("WEFT_FAKE_SMS", GPU_SMS);
}

static bool take_place(int gpu) {
    if (__atomic_fetch_add(&resident[gpu], 1, __ATOMIC_ACQ_REL) < sms())
        return true;
    __atomic_fetch_sub(&resident[gpu], 1, __ATOMIC_ACQ_REL);
    return false;
}

static void begin_block(struct grid *grid) {
    struct block *block = malloc(sizeof *block);
    *block = (struct block){grid, grid->nthreads, 0, NULL, NULL};
    block->threads = calloc(grid->nthreads, sizeof *block->threads);
    for (unsigned i = 0; i < grid->nthreads; i++) {
        struct thread *thread = &block->threads[i];
        thread->place = (struct kernel_place){
            {i, 0, 0}, {grid->begun, 0, 0}, {grid->nthreads, 1, 1}, {grid->nblocks, 1, 1}};
        thread->block = block;
        grid->runnable[grid->nrunnable++] = thread;
    }
    grid->blocks[grid->begun++] = block;
    grid->resident++;
}

static void end_block(struct block *block) {
    struct shared *next;
    for (struct shared *shared = block->shared; shared; shared = next) {
        next = shared->next;
        free(shared->memory);
        free(shared);
    }
    struct grid *grid = block->grid;
    grid->blocks[block->threads[0].place.block.x] = NULL;
    grid->resident--;
    __atomic_fetch_sub(&resident[grid->gpu], 1, __ATOMIC_ACQ_REL);
    free(block->threads);
    free(block);
}

/* A thread that has ended is not waited for. */
static void open_barrier(struct block *block) {
    struct grid *grid = block->grid;
    if (block->alive == 0 || block->arrived < block->alive)
        return;
    block->arrived = 0;
    for (unsigned i = 0; i < grid->nthreads; i++)
        if (block->threads[i].state == AT_BARRIER) {
            block->threads[i].state = RUNS;
            grid->runnable[grid->nrunnable++] = &block->threads[i];
        }
}

/* --- The scheduler -------------------------------------------------------------------------------
 */

static void end_thread(struct thread *thread) {
    struct block *block = thread->block;
    fibre_drop(&thread->fibre);
    if (--block->alive == 0)
        end_block(block);
    else
        open_barrier(block);
}

static void step(struct grid *grid) {
    size_t i = draw(grid, grid->nrunnable);
    struct thread *thread = grid->runnable[i];
    if (!thread->fibre.stack)
        fibre_begin(&thread->fibre, run_thread, thread);
    thread->state = RUNS;
    kernel_place = &thread->place;
    fibre_enter(&thread->fibre);
    kernel_place = &alone;
    if (thread->state == POLLS) {
        grid->polls++;
        return;
    }
    grid->polls = 0;
    grid->runnable[i] = grid->runnable[--grid->nrunnable];
    if (thread->state == ENDED)
        end_thread(thread);
    else
        open_barrier(thread->block);
}

/* Where all threads wait, others shall run: other PEs, and other streams. */
static void rest(const struct grid *grid) {
    const struct timespec nap = {0, NAP_NS};
    if (grid->nrunnable == 0 || grid->polls >= EAGER_TURNS * grid->nrunnable)
        nanosleep(&nap, NULL);
    else
        sched_yield();
}

static bool turn_is_over(const struct grid *grid) {
    return grid->nrunnable == 0 || (grid->polls > 0 && grid->polls % grid->nrunnable == 0);
}

static void run_all(struct grid *grid) {
    while (!grid->trapped && (grid->begun < grid->nblocks || grid->resident > 0)) {
        while (grid->begun < grid->nblocks && take_place(grid->gpu))
            begin_block(grid);
        if (grid->nrunnable > 0)
            step(grid);
        if (turn_is_over(grid))
            rest(grid);
    }
}

/* After a trap no thread runs on. */
static void abandon(struct grid *grid) {
    for (unsigned b = 0; b < grid->begun; b++) {
        struct block *block = grid->blocks[b];
        for (unsigned i = 0; block && i < grid->nthreads; i++)
            fibre_drop(&block->threads[i].fibre);
        if (block)
            end_block(block);
    }
}

bool grid_run(const struct kernel *kernel, const void *packed, int gpu, unsigned nblocks,
              unsigned nthreads) {
    static uint64_t launches;
    uint64_t launch = __atomic_fetch_add(&launches, 1, __ATOMIC_RELAXED);
    size_t most = nblocks < sms() ? nblocks : sms();
    struct grid grid = {
        .kernel = kernel, .packed = packed, .gpu = gpu, .nblocks = nblocks, .nthreads = nthreads};
    grid.random = ((uint64_t)call_setting("WEFT_FAKE_SEED", 0) * 1000003 + (uint64_t)gpu) * 257;
    grid.random += launch;
    grid.blocks = calloc(nblocks, sizeof(struct block *));
    grid.runnable = calloc(most * nthreads, sizeof(struct thread *));
    run_all(&grid);
    abandon(&grid);
    free(grid.runnable);
    free(grid.blocks);
    return !grid.trapped;
}

/* --- What threads call ---------------------------------------------------------------------------
 */

void kernel_block_sync(void) {
    struct thread *thread = self();
    if (!thread)
        return;
    thread->state = AT_BARRIER;
    thread->block->arrived++;
    fibre_leave(&thread->fibre, false);
}

void kernel_yield(void) {
    struct thread *thread = self();
    if (!thread) {
        sched_yield();
        return;
    }
    thread->state = POLLS;
    fibre_leave(&thread->fibre, false);
}

/* It begins with bytes that nobody wrote, as a GPU's does. */
void *kernel_shared(void *site, size_t bytes) {
    struct thread *thread = self();
    if (!thread)
        return site;
    struct shared *shared = thread->block->shared;
    while (shared && shared->site != site)
        shared = shared->next;
    if (shared)
        return shared->memory;
    shared = malloc(sizeof *shared);
    *shared = (struct shared){site, NULL, thread->block->shared};
    size_t whole = (bytes + SHARED_ALIGNMENT - 1) / SHARED_ALIGNMENT * SHARED_ALIGNMENT;
    shared->memory = aligned_alloc(SHARED_ALIGNMENT, whole);
    memset(shared->memory, 0xa5, whole);
    thread->block->shared = shared;
    return shared->memory;
}

void grid_trap(void) {
    struct thread *thread = self();
    if (!thread)
        return;
    thread->block->grid->trapped = true;
    thread->state = ENDED;
    fibre_leave(&thread->fibre, true);
}
