/* SPDX-License-Identifier: BSD-3-Clause */
/* Translates the allocator's offsets into addresses. */
#include "core/arena.h"
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include "core/blocks.h"
#include "core/order.h"
#include "core/team.h"

enum { REGRETS_FREE = 4, DOUBLINGS_MAX = 8 };

int weft_arena_open(struct weft_arena *arena, size_t capacity) {
    arena->capacity = capacity;
    arena->world = weft_team_find(SHMEM_TEAM_WORLD);
    memset(&arena->idle, 0, sizeof arena->idle);
    arena->blocks = weft_blocks_new(capacity);
    return arena->blocks ? 0 : -ENOMEM;
}

void weft_arena_close(struct weft_arena *arena) {
    weft_blocks_free(arena->blocks);
    arena->blocks = NULL;
}

size_t weft_arena_limit(const struct weft_arena *arena) {
    return weft_blocks_limit(arena->blocks);
}

void weft_arena_extend(struct weft_arena *arena, size_t limit) {
    weft_blocks_extend(arena->blocks, limit);
}

static void barrier(const struct weft_arena *arena) {
    weft_order_quiet();
    weft_sync_barrier(arena->world);
}

static void *address_of(const struct weft_arena *arena, size_t offset) {
    return (void *)(arena->window->local + offset);
}

/* Ends the job: no live object begins at this offset. */
static _Noreturn void refuse(const struct weft_arena *arena, size_t offset) {
    const void *p = address_of(arena, offset);
    size_t begin, bytes;
    if (offset >= weft_arena_limit(arena))
        weft_job_panic("argument ptr is %p, which is not in this PE's part of %s: pass a "
                       "pointer that an allocation on this PE returned",
                       p, arena->name);
    if (weft_blocks_find(arena->blocks, offset, &begin, &bytes))
        weft_job_panic(
            "argument ptr is %p, %zu bytes into an object of %zu bytes of %s: pass its address", p,
            offset - begin, bytes, arena->name);
    if (weft_blocks_given_back(arena->blocks, offset))
        weft_job_panic("argument ptr is %p, an object of %s that was freed before", p, arena->name);
    weft_job_panic("argument ptr is %p, in %s, where no object is or was: pass a pointer "
                   "that an allocation on this PE returned",
                   p, arena->name);
}

/* Returns the offset of a live object; ends the job if none begins at p. */
static size_t offset_of(const struct weft_arena *arena, const void *p) {
    size_t offset = (uintptr_t)p - arena->window->local;
    if (weft_blocks_size(arena->blocks, offset) == 0)
        refuse(arena, offset);
    return offset;
}

void weft_arena_check(const struct weft_arena *arena, const void *p) {
    offset_of(arena, p);
}

/* Returns the number of calls for which freed memory must stay unused before it is returned to the
 * system. A program that repeatedly allocates a large object after its memory was returned will
 * probably continue to. To avoid the cost each time, the number doubles with every further
 * repetition, DOUBLINGS_MAX times at most. */
static unsigned patience(const struct weft_arena *arena) {
    unsigned regrets = arena->idle.regrets;
    if (regrets <= REGRETS_FREE)
        return 1;
    return 1u << (regrets - REGRETS_FREE < DOUBLINGS_MAX ? regrets - REGRETS_FREE : DOUBLINGS_MAX);
}

/* Returns memory to the system that was freed some calls ago and has not been allocated again. Must
 * come before the call's last barrier: after it, peers use the memory that this call allocates. */
static void give_idle_back(struct weft_arena *arena) {
    if (__builtin_expect(!arena->idle.due, 1) || ++arena->idle.calls < patience(arena))
        return;
    arena->idle.done |= arena->give_back();
    arena->idle.due = false;
}

/* Memory freed later is returned together with what is waiting already, so that frequent small
 * frees do not delay the return. */
void weft_arena_expect_return(struct weft_arena *arena) {
    if (arena->idle.due)
        return;
    arena->idle.due = true;
    arena->idle.calls = 0;
}

static void give(struct weft_arena *arena, const void *p) {
    size_t offset = (uintptr_t)p - arena->window->local, idle;
    if (!weft_blocks_give(arena->blocks, offset, &idle))
        refuse(arena, offset);
    if (idle >= WEFT_ARENA_IDLE_LEAST)
        weft_arena_expect_return(arena);
}

static size_t take(struct weft_arena *arena, size_t bytes, size_t alignment) {
    if (bytes >= WEFT_ARENA_IDLE_LEAST && arena->idle.done) {
        arena->idle.done = false;
        arena->idle.regrets++;
    }
    size_t offset = weft_blocks_take(arena->blocks, bytes, alignment);
    if (offset != WEFT_BLOCK_NONE)
        return offset;
    size_t capacity = arena->capacity, need = SIZE_MAX;
    if (bytes <= capacity && alignment <= capacity)
        need = weft_blocks_limit_for(arena->blocks, bytes, alignment);
    if (arena->grow(need, bytes) < 0)
        return WEFT_BLOCK_NONE;
    return weft_blocks_take(arena->blocks, bytes, alignment);
}

void *weft_arena_malloc(struct weft_arena *arena, size_t bytes, size_t alignment, bool zero) {
    size_t offset = take(arena, bytes, alignment);
    void *p = offset == WEFT_BLOCK_NONE ? NULL : address_of(arena, offset);
    if (p && zero)
        arena->clear(p, bytes);
    give_idle_back(arena);
    barrier(arena);
    return p;
}

void weft_arena_free(struct weft_arena *arena, void *p) {
    give_idle_back(arena);
    barrier(arena); /* no PE may still be using the object */
    give(arena, p);
}

void *weft_arena_realloc(struct weft_arena *arena, void *p, size_t bytes) {
    barrier(arena);
    size_t old = offset_of(arena, p), old_bytes = weft_blocks_size(arena->blocks, old);
    if (bytes <= old_bytes && bytes > old_bytes / 2) {
        weft_blocks_resize(arena->blocks, old, bytes);
        barrier(arena);
        return p;
    }
    size_t offset = take(arena, bytes, WEFT_BLOCK_ALIGN);
    void *moved = offset == WEFT_BLOCK_NONE ? NULL : address_of(arena, offset);
    if (moved) {
        arena->copy(moved, p, bytes < old_bytes ? bytes : old_bytes);
        give_idle_back(arena);
        give(arena, p);
    }
    barrier(arena);
    return moved;
}

bool weft_arena_was_freed(const struct weft_arena *arena, const void *p) {
    size_t offset = (uintptr_t)p - arena->window->local, begin, bytes;
    return offset < weft_arena_limit(arena) && weft_blocks_given_back(arena->blocks, offset) &&
           !weft_blocks_find(arena->blocks, offset, &begin, &bytes);
}

bool weft_arena_find(const struct weft_arena *arena, const void *p, void **begin, size_t *bytes) {
    size_t offset;
    bool used =
        weft_blocks_find(arena->blocks, (uintptr_t)p - arena->window->local, &offset, bytes);
    *begin = used ? address_of(arena, offset) : NULL;
    return used;
}
