/* SPDX-License-Identifier: BSD-3-Clause */
/* Symmetric objects in the slots of a window: the standard's allocation routines, over the host's
 * memory or over GPUs'.
 *
 * Every PE runs the same allocator on the same calls, so objects correspond without a message. The
 * allocator knows offsets alone; what the memory is, and how there comes to be more of it, is its
 * owner's. Collective over WORLD, with the barriers that the standard prescribes. */
#ifndef WEFT_CORE_ARENA_H
#define WEFT_CORE_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include "weft/addr.h"

struct weft_blocks;
struct weft_team;

#define WEFT_ARENA_IDLE_LEAST ((size_t)64 << 20) /* what is worth giving back */

struct weft_arena {
    const struct weft_window *window;
    const char *name; /* in messages */
    size_t capacity;
    struct weft_blocks *blocks;
    struct weft_team *world;

    /* Makes at least the first `need` bytes exist on every PE, or on none: 0 or -errno, the same on
     * all. It has called weft_arena_extend then. `bytes`: what was asked for, for messages. */
    int (*grow)(size_t need, size_t bytes);
    void (*clear)(void *p, size_t bytes);
    void (*copy)(void *to, const void *from, size_t bytes);

    /* Gives memory of this PE back that no object has, where it is much; whether it did. All PEs
     * call it alike. */
    bool (*give_back)(void);
    struct {
        bool due;         /* so much was freed that it is worth it */
        bool done;        /* some was given back, and no large object was asked for since */
        unsigned calls;   /* since it was freed */
        unsigned regrets; /* how often one was asked for then */
    } idle;
};

/* The bookkeeping of `capacity` bytes of which none exist yet. 0 or -ENOMEM, without text. */
int weft_arena_open(struct weft_arena *arena, size_t capacity);
void weft_arena_close(struct weft_arena *arena);

/* How many bytes exist, on all PEs, and that they are more now. */
size_t weft_arena_limit(const struct weft_arena *arena);
void weft_arena_extend(struct weft_arena *arena, size_t limit);

void *weft_arena_malloc(struct weft_arena *arena, size_t bytes, size_t alignment, bool zero);
void *weft_arena_realloc(struct weft_arena *arena, void *p, size_t bytes);
void weft_arena_free(struct weft_arena *arena, void *p);

/* There is something to give back, in one of the next calls. A free that makes a run of
 * WEFT_ARENA_IDLE_LEAST bytes which may be there says so by itself. */
void weft_arena_expect_return(struct weft_arena *arena);

/* Ends the job unless a live object begins at `p`, with a line that says what is there instead. */
void weft_arena_check(const struct weft_arena *arena, const void *p);

/* Whether an object that began at `p` was freed, and no other one lies there. */
bool weft_arena_was_freed(const struct weft_arena *arena, const void *p);

/* The live object that `p` lies in, or in whose last line it lies; false when there is none. */
bool weft_arena_find(const struct weft_arena *arena, const void *p, void **begin, size_t *bytes);

#endif
