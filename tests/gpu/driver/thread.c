/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions that threads of a grid call: barriers, warps, shared memory, and memory that may be
 * weak. */
#include "block.h"
#include "call.h"
#include "grid.h"
#include "space.h"
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct kernel_place alone = {{0, 0, 0}, {0, 0, 0}, {1, 1, 1}, {1, 1, 1}};
__thread const struct kernel_place *kernel_place = &alone;
__thread bool kernel_is_weak;

struct thread *thread_self(void) {
    return kernel_place == &alone ? NULL : (struct thread *)(uintptr_t)kernel_place;
}

void thread_set(struct thread *thread) {
    kernel_place = thread ? &thread->place : &alone;
    kernel_is_weak = thread && thread->block->grid->weak;
}

void view_join(struct view *view, const struct view *other) {
    if (view->acquired < other->acquired)
        view->acquired = other->acquired;
    if (view->proxied < other->proxied)
        view->proxied = other->proxied;
}

bool block_owns(const void *at, int gpu) {
    pthread_mutex_lock(&driver_lock);
    int owner = space_owner((uintptr_t)at);
    pthread_mutex_unlock(&driver_lock);
    return owner == gpu;
}

void thread_fault(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "pretended GPU: %s: ",
            thread_self() ? thread_self()->block->grid->kernel->name : "a kernel");
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    kernel_trap();
}

/* --- Barriers, warps, shared memory --------------------------------------------------------------
 */

bool kernel_block_sync(bool mine) {
    struct thread *thread = thread_self();
    if (!thread)
        return mine;
    thread->state = AT_BARRIER;
    thread->block->arrived++;
    thread->block->next_any |= mine;
    fibre_leave(&thread->fibre, false);
    return thread->block->any;
}

const uint64_t *kernel_warp_meet(uint64_t mine, uint32_t *lanes) {
    static __thread uint64_t own;
    struct thread *thread = thread_self();
    if (!thread) {
        own = mine;
        *lanes = 1;
        return &own;
    }
    struct warp *warp = thread_warp(thread);
    unsigned lane = (unsigned)thread_number(thread) % LANES, turn = warp->turn % 2;
    warp->given[turn][lane] = mine;
    warp->lanes[turn] |= 1u << lane;
    warp->arrived++;
    thread->state = AT_WARP;
    fibre_leave(&thread->fibre, false);
    *lanes = warp->lanes[turn];
    return warp->given[turn];
}

void kernel_yield(void) {
    struct thread *thread = thread_self();
    if (!thread) {
        sched_yield();
        return;
    }
    thread->state = POLLS;
    fibre_leave(&thread->fibre, false);
}

static char *fresh_memory(size_t bytes, size_t alignment, int content) {
    size_t whole = (bytes + alignment - 1) / alignment * alignment;
    return memset(aligned_alloc(alignment, whole), content, whole);
}

struct shared *shared_new(struct block *block, const void *site, size_t bytes, size_t alignment) {
    struct shared *shared = malloc(sizeof *shared);
    *shared =
        (struct shared){site, fresh_memory(bytes, alignment, 0xa5), NULL, bytes, block->shared};
    if (block->grid->weak)
        shared->behind = fresh_memory(bytes, alignment, 0x5a);
    block->shared = shared;
    return shared;
}

void *kernel_shared(void *site, size_t bytes) {
    struct thread *thread = thread_self();
    if (!thread)
        return site;
    struct shared *shared = thread->block->shared;
    while (shared && shared->site != site)
        shared = shared->next;
    return (shared ? shared : shared_new(thread->block, site, bytes, SHARED_ALIGNMENT))->memory;
}

void *kernel_shared_dynamic(void) {
    return thread_self()->block->dynamic->memory;
}

struct shared *block_shared(const struct block *block, const void *at, size_t bytes) {
    const char *first = at;
    for (struct shared *shared = block->shared; shared; shared = shared->next)
        if (first >= shared->memory && first + bytes <= shared->memory + shared->bytes)
            return shared;
    return NULL;
}

void *block_there(const struct block *block, struct block *other, const void *at) {
    if (block_shared(block, at, 1) != block->dynamic)
        thread_fault("%p is not in the dynamic shared memory", at);
    return other->dynamic->memory + ((const char *)at - block->dynamic->memory);
}

unsigned kernel_cluster_rank(void) {
    const struct block *block = thread_self()->block;
    return block->number % block->grid->cluster_blocks;
}

void *kernel_cluster_address(void *shared, unsigned rank) {
    const struct block *block = thread_self()->block;
    return block_there(block, block_of_cluster(block, rank), shared);
}

void kernel_cluster_sync(void) {
    struct thread *thread = thread_self();
    struct grid *grid = thread->block->grid;
    grid->clusters[thread->block->number / grid->cluster_blocks].arrived++;
    thread->state = AT_CLUSTER;
    fibre_leave(&thread->fibre, false);
}

static void await_group(struct thread *thread, unsigned id, unsigned threads) {
    thread->block->named[id]++;
    thread->named_threads = threads;
    thread->state = AT_NAMED + (int)id;
    fibre_leave(&thread->fibre, false);
}

static void before_named(struct thread *thread, unsigned id, unsigned threads) {
    struct block *block = thread->block;
    if (id >= NAMED_BARRIERS || threads % LANES != 0)
        thread_fault("named barrier %u for %u threads", id, threads);
    buffer_publish(&block->buffer, thread_number(thread), block_owns, block->grid->gpu);
}

void kernel_named_sync(unsigned id, unsigned threads) {
    struct thread *thread = thread_self();
    before_named(thread, id, threads);
    await_group(thread, id, threads);
}

void kernel_named_arrive(unsigned id, unsigned threads) {
    struct thread *thread = thread_self();
    before_named(thread, id, threads);
    thread->block->named[id]++;
    grid_open_named(thread->block, id, threads);
}

void kernel_warpgroup_meet(void) {
    struct thread *thread = thread_self();
    unsigned group = (unsigned)thread_number(thread) / WARPGROUP;
    await_group(thread, NAMED_BARRIERS + group, WARPGROUP);
}

void thread_end(struct thread *thread) {
    free(thread->products);
    free(thread->written);
    thread->products = NULL;
    thread->written = NULL;
}

/* --- Weak memory ---------------------------------------------------------------------------------
 */

void thread_before_access(struct thread *thread) {
    struct grid *grid = thread->block->grid;
    if (buffer_draw(&grid->random, DRAIN_IN) == 0) {
        buffer_drain(&thread->block->buffer, ARRIVE_IN);
        async_drain(thread->block, ARRIVE_IN, false);
    }
    if (buffer_draw(&grid->random, PREEMPT_IN) == 0)
        fibre_leave(&thread->fibre, false);
}

static void acquire(struct thread *thread) {
    thread->view.acquired = cache_acquire(thread->block->cache);
}

static bool releases(int order) {
    return order != KERNEL_WEAK && order != __ATOMIC_RELAXED && order != __ATOMIC_ACQUIRE;
}

static bool acquires(int order) {
    return order != KERNEL_WEAK && order != __ATOMIC_RELAXED && order != __ATOMIC_RELEASE;
}

void kernel_misaligned(const void *at, unsigned bytes) {
    thread_fault("%u bytes at %p, which is no multiple of them", bytes, at);
}

uint64_t kernel_load(const void *at, unsigned bytes, int order) {
    struct thread *thread = thread_self();
    thread_before_access(thread);
    struct block *block = thread->block;
    uint64_t value;
    if (order == KERNEL_WEAK && cache_find(block->cache, at, bytes, thread->view.acquired, &value))
        return value;
    value = buffer_load(&block->buffer, at, bytes, thread_number(thread));
    if (order == KERNEL_WEAK)
        cache_keep(block->cache, at, bytes, value);
    else
        cache_forget(block->cache, at);
    if (acquires(order))
        acquire(thread);
    return value;
}

void kernel_store(void *at, uint64_t value, unsigned bytes, int order) {
    struct thread *thread = thread_self();
    thread_before_access(thread);
    struct block *block = thread->block;
    block->grid->polls = block->grid->turns = 0;
    if (releases(order))
        buffer_release(&block->buffer, thread_number(thread), NULL);
    cache_forget(block->cache, at);
    async_forget(&block->async, at);
    buffer_add(&block->buffer,
               (struct buffer_store){at, value, bytes, thread_number(thread), false});
}

void kernel_order(const void *word, int order) {
    struct thread *thread = thread_self();
    thread_before_access(thread);
    struct block *block = thread->block;
    if (releases(order) || word)
        buffer_release(&block->buffer, thread_number(thread), releases(order) ? NULL : word);
    if (word) {
        cache_forget(block->cache, word);
        async_forget(&block->async, word);
    }
    if (acquires(order))
        acquire(thread);
}

/* --- The end -------------------------------------------------------------------------------------
 */

void grid_trap(void) {
    struct thread *thread = thread_self();
    if (!thread)
        return;
    thread->block->grid->trapped = true;
    thread->state = ENDED;
    fibre_leave(&thread->fibre, true);
}
