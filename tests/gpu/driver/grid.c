/* SPDX-License-Identifier: BSD-3-Clause */
#include "grid.h"
#include "buffer.h"
#include "cache.h"
#include "fibre.h"
#include "gpu.h"
#include "space.h"
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Turns of all threads without any progress before the host thread sleeps between them. With weak
 * memory: one access in so many lets another thread run first, and one in so many, or a turn, lets
 * one store in so many arrive. */
enum {
    SHARED_ALIGNMENT = 16,
    EAGER_TURNS = 64,
    NAP_NS = 50000,
    PREEMPT_IN = 8,
    DRAIN_IN = 16,
    ARRIVE_IN = 4
};

struct shared {
    const void *site; /* where it is declared */
    void *memory;
    struct shared *next;
};

enum { BARRIERS = 16 };

struct block {
    struct grid *grid;
    unsigned alive, arrived; /* threads: not ended, and of them at the barrier */
    struct shared *shared;
    struct thread *threads;
    uint32_t any; /* of the barrier that is open, and of the next one */
    uint32_t next_any;
    struct {
        unsigned arrived, turn; /* turns: how often all have come */
        uint64_t acquired;      /* by those that have come */
    } barriers[BARRIERS];
    struct buffer buffer;
    struct cache cache;
};

struct thread {
    struct kernel_place place; /* first: what kernel_place points to */
    struct fibre fibre;
    struct block *block;
    uint64_t acquired;                             /* as the block's cache has it */
    enum { RUNS, POLLS, AT_BARRIER, ENDED } state; /* RUNS: another one was to have its turn */
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
    size_t polls, turns; /* of this turn; turns since somebody has last got ahead */
    struct timespec idle_since;
    bool trapped, weak;
};

static const struct kernel_place alone = {{0, 0, 0}, {0, 0, 0}, {1, 1, 1}, {1, 1, 1}};
__thread const struct kernel_place *kernel_place = &alone;
__thread bool kernel_is_weak;
static unsigned resident[GPUS_MAX]; /* blocks of each GPU, by all streams */

static struct thread *self(void) {
    return kernel_place == &alone ? NULL : (struct thread *)(uintptr_t)kernel_place;
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
    *block = (struct block){.grid = grid, .alive = grid->nthreads};
    block->buffer.random = &grid->random;
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

static bool is_own(const void *at, int gpu) {
    pthread_mutex_lock(&driver_lock);
    int owner = space_owner((uintptr_t)at);
    pthread_mutex_unlock(&driver_lock);
    return owner == gpu;
}

/* A thread that has ended is not waited for. */
static void open_barrier(struct block *block) {
    struct grid *grid = block->grid;
    if (block->alive == 0 || block->arrived < block->alive)
        return;
    block->arrived = 0;
    block->any = block->next_any;
    block->next_any = 0;
    buffer_publish(&block->buffer, BUFFER_ALL, is_own, grid->gpu);
    uint64_t acquired = 0;
    for (unsigned i = 0; i < grid->nthreads; i++)
        if (block->threads[i].acquired > acquired)
            acquired = block->threads[i].acquired;
    for (unsigned i = 0; i < grid->nthreads; i++)
        if (block->threads[i].state == AT_BARRIER) {
            block->threads[i].state = RUNS;
            block->threads[i].acquired = acquired;
            grid->runnable[grid->nrunnable++] = &block->threads[i];
        }
}

/* --- The scheduler -------------------------------------------------------------------------------
 */

static void run_on(struct thread *thread) {
    if (!thread->fibre.stack)
        fibre_begin(&thread->fibre, run_thread, thread);
    thread->state = RUNS;
    kernel_place = &thread->place;
    kernel_is_weak = thread->block->grid->weak;
    fibre_enter(&thread->fibre);
    kernel_place = &alone;
    kernel_is_weak = false;
}

/* A block whose stores have not arrived goes on without threads. */
static void end_thread(struct thread *thread) {
    struct block *block = thread->block;
    fibre_drop(&thread->fibre);
    if (--block->alive > 0)
        open_barrier(block);
    else if (block->buffer.n == 0)
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
    else
        open_barrier(thread->block);
}

static void let_arrive(struct grid *grid) {
    for (unsigned b = 0; b < grid->begun; b++) {
        struct block *block = grid->blocks[b];
        if (!block || block->buffer.n == 0)
            continue;
        buffer_drain(&block->buffer, ARRIVE_IN);
        if (block->alive == 0 && block->buffer.n == 0)
            end_block(block);
    }
}

/* A kernel that waits in vain traps, if that is wanted. */
static void look_for_hang(struct grid *grid) {
    long most_ms = call_setting("WEFT_FAKE_HANG_MS", 0);
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (grid->turns == 0)
        grid->idle_since = now;
    long ms = (now.tv_sec - grid->idle_since.tv_sec) * 1000 +
              (now.tv_nsec - grid->idle_since.tv_nsec) / 1000000;
    if (most_ms == 0 || ms < most_ms)
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
        while (grid->begun < grid->nblocks && take_place(grid->gpu))
            begin_block(grid);
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
    grid.weak = call_setting("WEFT_FAKE_WEAK", 0) != 0;
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

bool kernel_block_sync(bool mine) {
    struct thread *thread = self();
    if (!thread)
        return mine;
    thread->state = AT_BARRIER;
    thread->block->arrived++;
    thread->block->next_any |= mine;
    fibre_leave(&thread->fibre, false);
    return thread->block->any;
}

void kernel_barrier(unsigned barrier, unsigned threads, bool waits) {
    struct thread *thread = self();
    struct block *block = thread->block;
    unsigned turn = block->barriers[barrier].turn;
    uint64_t *acquired = &block->barriers[barrier].acquired;
    buffer_publish(&block->buffer, (int)thread->place.thread.x, is_own, block->grid->gpu);
    if (thread->acquired > *acquired)
        *acquired = thread->acquired;
    if (++block->barriers[barrier].arrived == threads) {
        block->barriers[barrier].arrived = 0;
        block->barriers[barrier].turn++;
        block->grid->turns = 0;
    }
    while (waits && block->barriers[barrier].turn == turn)
        kernel_yield();
    if (waits && thread->acquired < *acquired)
        thread->acquired = *acquired;
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

/* --- Weak memory ---------------------------------------------------------------------------------
 */

/* Anything may happen before an access. */
static struct thread *before_access(void) {
    struct thread *thread = self();
    struct grid *grid = thread->block->grid;
    if (buffer_draw(&grid->random, DRAIN_IN) == 0)
        buffer_drain(&thread->block->buffer, ARRIVE_IN);
    if (buffer_draw(&grid->random, PREEMPT_IN) == 0)
        fibre_leave(&thread->fibre, false);
    return thread;
}

static bool releases(int order) {
    return order != KERNEL_WEAK && order != __ATOMIC_RELAXED && order != __ATOMIC_ACQUIRE;
}

static bool acquires(int order) {
    return order != KERNEL_WEAK && order != __ATOMIC_RELAXED && order != __ATOMIC_RELEASE;
}

uint64_t kernel_load(const void *at, unsigned bytes, int order) {
    struct thread *thread = before_access();
    struct block *block = thread->block;
    uint64_t value;
    if (order == KERNEL_WEAK && cache_find(&block->cache, at, bytes, thread->acquired, &value))
        return value;
    value = buffer_load(&block->buffer, at, bytes, (int)thread->place.thread.x);
    if (order == KERNEL_WEAK)
        cache_keep(&block->cache, at, bytes, value);
    else
        cache_forget(&block->cache, at);
    if (acquires(order))
        thread->acquired = cache_acquire(&block->cache);
    return value;
}

void kernel_store(void *at, uint64_t value, unsigned bytes, int order) {
    struct thread *thread = before_access();
    struct block *block = thread->block;
    int number = (int)thread->place.thread.x;
    block->grid->polls = block->grid->turns = 0;
    if (releases(order))
        buffer_release(&block->buffer, number, NULL);
    cache_forget(&block->cache, at);
    buffer_add(&block->buffer, (struct buffer_store){at, value, bytes, number});
}

void kernel_order(const void *word, int order) {
    struct thread *thread = before_access();
    struct block *block = thread->block;
    if (releases(order) || word)
        buffer_release(&block->buffer, (int)thread->place.thread.x, releases(order) ? NULL : word);
    if (word)
        cache_forget(&block->cache, word);
    if (acquires(order))
        thread->acquired = cache_acquire(&block->cache);
}

/* --- The end -------------------------------------------------------------------------------------
 */

void grid_trap(void) {
    struct thread *thread = self();
    if (!thread)
        return;
    thread->block->grid->trapped = true;
    thread->state = ENDED;
    fibre_leave(&thread->fibre, true);
}
