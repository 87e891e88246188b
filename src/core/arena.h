/* SPDX-License-Identifier: BSD-3-Clause */
/* Symmetric objects in the slots of a window: the standard's allocation routines, over host memory
 * or GPU memory.
 *
 * Every PE runs the same allocator on the same calls, so objects correspond without communication.
 * The allocator (core/blocks.h) knows only offsets; the arena's owner decides what the memory is
 * and how it grows. Allocation is collective over WORLD, with the barriers that the standard
 * prescribes. */
#ifndef WEFT_CORE_ARENA_H
#define WEFT_CORE_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include "weft/addr.h"

struct weft_blocks;
struct weft_team;

#define WEFT_ARENA_IDLE_LEAST ((size_t)64 << 20) /* worth returning to the system */

struct weft_arena {
    const struct weft_window *window;
    const char *name; /* for error lines */
    size_t capacity;
    struct weft_blocks *blocks;
    struct weft_team *world;

    /* Makes at least the first `need` bytes exist on every PE, or on none; `bytes` is the size of
     * the request, for error lines. Returns 0 after calling weft_arena_extend, or -errno on all
     * PEs, though not the same one. */
    int (*grow)(size_t need, size_t bytes);
    void (*clear)(void *p, size_t bytes);
    void (*copy)(void *to, const void *from, size_t bytes);

    /* Returns large free parts of this PE's memory to the system; returns whether there were any.
     * All PEs make the same calls. */
    bool (*give_back)(void);
    struct {
        bool due;         /* enough was freed to be worth it */
        bool done;        /* some was returned, and no large object was allocated since */
        unsigned calls;   /* since it was freed */
        unsigned regrets; /* how often a large object was allocated after a return */
    } idle;
};

/* Prepares the bookkeeping for up to `capacity` bytes, none of which exist yet. Returns 0 or
 * -ENOMEM, without text. */
int weft_arena_open(struct weft_arena *arena, size_t capacity);
void weft_arena_close(struct weft_arena *arena);

/* The number of bytes that exist on all PEs: returns it; raises it. */
size_t weft_arena_limit(const struct weft_arena *arena);
void weft_arena_extend(struct weft_arena *arena, size_t limit);

void *weft_arena_malloc(struct weft_arena *arena, size_t bytes, size_t alignment, bool zero);
void *weft_arena_realloc(struct weft_arena *arena, void *p, size_t bytes);
void weft_arena_free(struct weft_arena *arena, void *p);

/* Schedules a return of memory for one of the next calls. A free that leaves WEFT_ARENA_IDLE_LEAST
 * contiguous unused bytes does this by itself. */
void weft_arena_expect_return(struct weft_arena *arena);

/* Ends the job unless a live object begins at `p`. The line says what is at `p` instead. */
void weft_arena_check(const struct weft_arena *arena, const void *p);

/* Returns whether an object that began at `p` was freed and no other object is there now. */
bool weft_arena_was_freed(const struct weft_arena *arena, const void *p);

/* Finds the live object that contains `p`, or whose last cache line does. Returns false if there is
 * none. */
bool weft_arena_find(const struct weft_arena *arena, const void *p, void **begin, size_t *bytes);

#endif
