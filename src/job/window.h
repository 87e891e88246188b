/* SPDX-License-Identifier: BSD-3-Clause */
/* Segments: a window's memory on one host, one sealed memfd per near PE.
 *
 * alloc is local: it reserves count * stride of address space and maps this PE's memfd into its own
 * slot. attach maps the peers' memfds, which have come by an exchange. A memfd has the full size of
 * a slot from the start and can change no more; pages come to be inside it, when they are committed
 * or else when they are touched. Errors are 0 or -errno without text: callers know what the memory
 * is for. */
#ifndef WEFT_JOB_WINDOW_H
#define WEFT_JOB_WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "weft/addr.h"
#include "base/descriptor.h"
#include "base/sanitizer.h"

#define WEFT_EXTENTS_MAX 32

/* Slots begin at multiples of this, or of their size if that is less (a power of two for a heap),
 * on every PE: an offset in the heap that is aligned is an aligned address everywhere. */
#define WEFT_SEGMENT_ALIGN ((size_t)1 << 30)

/* Parts of a slot without memory, in ascending order: what lies between the writable segments of an
 * executable. weft_near does not look at them, so an access to a hole faults. */
#define WEFT_HOLES_MAX 8
struct weft_holes {
    unsigned count;
    struct weft_hole {
        size_t begin, end; /* offsets */
    } hole[WEFT_HOLES_MAX];
};

/* The PEs that have slots: first, first + step, ..., count of them. This PE has number `mine`. */
struct weft_slots {
    uint32_t first, step, count, mine;
};

struct weft_segment {
    struct weft_window window; /* window.bytes: how far it has grown, or for statics all of it */
    size_t slot_bytes;         /* usable bytes of a slot: the smallest among the members */
    uint32_t mine;             /* this PE's slot */
    int fd;                    /* own memory */
    struct weft_holes holes;   /* of statics */
    unsigned nextents;
    struct weft_extent {
        size_t offset, bytes;
    } extents[WEFT_EXTENTS_MAX]; /* by which it has grown, in order: what a device registers */
};

/* The windows that an address of the user can lie in, and the one that the library works in. */
struct weft_windows {
    struct weft_segment heap, statics, scratch;
};
extern struct weft_windows weft_windows;

/* A memfd of `bytes` without a name, sealed against shrinking, growing and further seals: a
 * descriptor that weft_descriptor_close closes, or -errno. */
int weft_memfd_create(const char *name, size_t bytes);

/* Makes a segment of these slots; halves slot_bytes (down to slot_bytes_min) until the address
 * space, RLIMIT_AS and RLIMIT_FSIZE grant it. Local. */
int weft_segment_alloc(struct weft_segment *segment, const char *name,
                       const struct weft_slots *slots, size_t slot_bytes, size_t slot_bytes_min);

/* Reserves slots for memory that lies elsewhere already (static data at `local`, backed by `fd`).
 * The own slot is a second mapping of it, so that no access has to ask whether it is its own. The
 * same holes are in every slot; NULL if there are none. */
int weft_segment_alloc_at(struct weft_segment *segment, const struct weft_slots *slots,
                          uintptr_t local, size_t bytes, const struct weft_holes *holes, int fd);

/* Maps fds[slot] into every other slot; slot_bytes is what all agreed on. */
int weft_segment_attach(struct weft_segment *segment, const int *fds, size_t slot_bytes);

/* Lets this PE's memory grow up to `bytes` from the start of its slot. Of what is new the first
 * `at_once` bytes are committed, the rest when it is touched. Local. -ENOMEM. */
int weft_segment_grow(struct weft_segment *segment, size_t bytes, size_t at_once);

/* Undoes growth beyond `bytes`, of which no device knows and which nobody has used: memory behind
 * it goes back. 0 or -errno. */
int weft_segment_shrink(struct weft_segment *segment, size_t bytes);

/* Makes [offset, offset + bytes) of all slots accessible here. The rest of a slot is not, so that
 * whatever walks over the memory of a process (a core dump, helgrind) passes over it. What a
 * segment has grown by is accessible already. Local, a system call a slot; 0 or -errno. */
int weft_segment_open(const struct weft_segment *segment, size_t offset, size_t bytes);

/* Opens [offset, offset + bytes), and commits it in the own slot without counting it as an extent.
 */
int weft_segment_commit_range(struct weft_segment *segment, size_t offset, size_t bytes);

/* Gives the whole pages of [offset, offset+bytes) of the own slot back to the machine: they are
 * zeros when they are touched again. Nobody uses them, on any PE, and no device has them. */
int weft_segment_return(struct weft_segment *segment, size_t offset, size_t bytes);

/* Bytes of the own slot that have memory behind them. */
size_t weft_segment_present(const struct weft_segment *segment);

/* The first run of pages in [from, end) of the own slot that were written to, as far as it reaches:
 * *begin to *stop. False where there is none. What lies between runs is zeros without memory, which
 * a look at it would bring. */
bool weft_segment_find_data(const struct weft_segment *segment, size_t from, size_t end,
                            size_t *begin, size_t *stop);

/* Whether there are slots: not so of what a PE alone has in place. */
static inline bool weft_segment_is_mapped(const struct weft_segment *segment) {
    return segment->window.stride != 0;
}

/* Finds the memory of a slot from `offset` up to the next hole or the end, `bytes`: *begin to *end.
 * False if there is none. */
static inline bool weft_holes_next_piece(const struct weft_holes *holes, size_t offset,
                                         size_t bytes, size_t *begin, size_t *end) {
    *begin = offset;
    *end = bytes;
    for (unsigned i = 0; i < holes->count; i++) {
        const struct weft_hole *hole = &holes->hole[i];
        if (*begin >= hole->begin && *begin < hole->end)
            *begin = hole->end;
        else if (*begin<hole->begin && * end> hole->begin)
            *end = hole->begin;
    }
    return *begin < *end;
}

/* Whether [offset, offset + bytes) meets a hole. */
static inline bool weft_holes_meet(const struct weft_holes *holes, size_t offset, size_t bytes) {
    for (unsigned i = 0; i < holes->count; i++)
        if (offset < holes->hole[i].end && offset + bytes > holes->hole[i].begin)
            return true;
    return false;
}

/* Whether [p, p + bytes) lies between two segments of the executable, where constants may be:
 * inside the window of the statics, but not symmetric. */
static inline bool weft_statics_meet_hole(const void *p, size_t bytes) {
    const struct weft_segment *statics = &weft_windows.statics;
    return statics->holes.count > 0 &&
           weft_holes_meet(&statics->holes, (uintptr_t)p - statics->window.local, bytes);
}

void weft_segment_free(struct weft_segment *segment);

/* Where `pe` keeps its copy of [p, p+bytes), for a load or store from here. NULL: p is no symmetric
 * address of that length, or there is no such PE near. Heap first: about a nanosecond. */
static inline __attribute__((always_inline)) void *weft_near(const void *p, size_t bytes, int pe) {
    const struct weft_window *w = &weft_windows.heap.window;
    uintptr_t offset = (uintptr_t)p - w->local;
    size_t now = weft_window_bytes(w); /* one load keeps the choice below a branch */
    if (__builtin_expect(offset > now, 0)) {
        w = &weft_windows.statics.window;
        offset = (uintptr_t)p - w->local;
        now = weft_window_bytes(w);
    }
    if (__builtin_expect(!weft_window_fits(now, offset, bytes), 0))
        return NULL;
    uint32_t slot = weft_window_slot(w, pe);
    if (__builtin_expect(slot >= w->count, 0))
        return NULL;
#ifdef WEFT_THREAD_SANITIZER /* which knows memory by one address: own statics must have one */
    if (slot == weft_windows.heap.mine)
        return (void *)p;
#endif
    void *near = weft_window_at(w, p, slot);
    if (!near) /* the callers' tests for NULL then cost nothing here */
        __builtin_unreachable();
    return near;
}

#endif
