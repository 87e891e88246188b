/* SPDX-License-Identifier: BSD-3-Clause */
/* Segments: a window's memory on one host, one sealed memfd per near PE.
 *
 * weft_segment_alloc is local: it reserves count * stride bytes of address space and maps this PE's
 * memfd into its own slot. weft_segment_attach maps the peers' memfds, received in an exchange. A
 * memfd has the full size of a slot from the start and never changes its size. Its pages are
 * allocated when they are committed or first touched. Functions return 0 or -errno without text:
 * the caller knows the purpose of the memory. */
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
 * on every PE. So an aligned offset in the heap is an aligned address everywhere. */
#define WEFT_SEGMENT_ALIGN ((size_t)1 << 30)

/* Parts of a slot without memory, in ascending order: the gaps between an executable's writable
 * segments. weft_near does not check for holes, so an access to a hole faults. */
#define WEFT_HOLES_MAX 8
struct weft_holes {
    unsigned count;
    struct weft_hole {
        size_t begin, end; /* offsets */
    } hole[WEFT_HOLES_MAX];
};

/* The PEs that have slots: first, first + step, ..., `count` of them. This PE's slot is `mine`. */
struct weft_slots {
    uint32_t first, step, count, mine;
};

struct weft_segment {
    struct weft_window window; /* window.bytes is its grown size; of statics, all */
    size_t slot_bytes;         /* usable bytes of a slot: the minimum over all members */
    uint32_t mine;             /* this PE's slot */
    int fd;                    /* this PE's memory */
    struct weft_holes holes;   /* of statics only */
    unsigned nextents;
    struct weft_extent {
        size_t offset, bytes;
    } extents[WEFT_EXTENTS_MAX]; /* the steps of its growth, in order: devices register each */
};

/* The heap and statics hold the user's symmetric objects; the scratch is the library's own. */
struct weft_windows {
    struct weft_segment heap, statics, scratch;
};
extern struct weft_windows weft_windows;

/* Creates an unnamed memfd of `bytes`, sealed against shrinking, growing and further seals. Returns
 * a descriptor, which the caller closes with weft_descriptor_close, or -errno. */
int weft_memfd_create(const char *name, size_t bytes);

/* Makes a segment with these slots. Halves slot_bytes, down to slot_bytes_min, until the address
 * space, RLIMIT_AS and RLIMIT_FSIZE permit it. Local. */
int weft_segment_alloc(struct weft_segment *segment, const char *name,
                       const struct weft_slots *slots, size_t slot_bytes, size_t slot_bytes_min);

/* Memory that exists already, such as static data. All slots have its holes; NULL means no holes.
 */
struct weft_backing {
    uintptr_t local; /* where it is mapped */
    size_t bytes;
    const struct weft_holes *holes;
    int fd; /* stays the caller's */
};

/* Makes a segment of slots for such memory. This PE's slot is a second mapping of it, so that
 * accesses need not test for their own PE. */
int weft_segment_alloc_at(struct weft_segment *segment, const struct weft_slots *slots,
                          const struct weft_backing *memory);

/* Maps fds[slot] into every slot but this PE's; slot_bytes is the size that all members agreed
 * on. */
int weft_segment_attach(struct weft_segment *segment, const int *fds, size_t slot_bytes);

/* Lets this PE's memory grow to `bytes` from the start of its slot. Commits the first `at_once`
 * bytes of the new part; the rest is allocated when touched. Local. Returns 0, or -ENOMEM and
 * changes nothing. */
int weft_segment_grow(struct weft_segment *segment, size_t bytes, size_t at_once);

/* Undoes growth beyond `bytes` and returns the memory to the system. No device may have registered
 * that part, and no PE may have used it. Returns 0 or -errno. */
int weft_segment_shrink(struct weft_segment *segment, size_t bytes);

/* Makes [offset, offset + bytes) of all slots accessible to this process; memory within the
 * segment's grown size is already. The rest of a slot stays inaccessible, so that tools that read
 * all memory of a process (core dumps, helgrind) skip it. Local, one system call per slot; returns
 * 0 or -errno. */
int weft_segment_open(const struct weft_segment *segment, size_t offset, size_t bytes);

/* Opens [offset, offset + bytes) and commits that part of this PE's slot, without recording it as
 * an extent. */
int weft_segment_commit_range(struct weft_segment *segment, size_t offset, size_t bytes);

/* Returns the whole pages of [offset, offset + bytes) of this PE's slot to the system; they read as
 * zeros when touched again. PEs must not be using them, and devices must not have registered them.
 */
int weft_segment_return(struct weft_segment *segment, size_t offset, size_t bytes);

/* Returns the number of bytes of this PE's slot that have memory. */
size_t weft_segment_present(const struct weft_segment *segment);

/* Finds the first run of pages in [from, end) of this PE's slot that were written to: [*begin,
 * *stop). Returns false if there is none. Pages between runs are zeros without memory; reading them
 * would allocate it. */
bool weft_segment_find_data(const struct weft_segment *segment, size_t from, size_t end,
                            size_t *begin, size_t *stop);

/* Returns whether there are slots. A single PE's static data, used in place, has no slots. */
static inline bool weft_segment_is_mapped(const struct weft_segment *segment) {
    return segment->window.stride != 0;
}

/* Finds the part of a slot from `offset` up to the next hole or the end, `bytes`: [*begin, *end).
 * Returns false if there is none. */
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

/* Returns whether [offset, offset + bytes) overlaps a hole. */
static inline bool weft_holes_meet(const struct weft_holes *holes, size_t offset, size_t bytes) {
    for (unsigned i = 0; i < holes->count; i++)
        if (offset < holes->hole[i].end && offset + bytes > holes->hole[i].begin)
            return true;
    return false;
}

/* Returns whether [p, p + bytes) overlaps a gap between two writable segments of the executable.
 * Constants may lie there: inside the window of the statics, but not symmetric. */
static inline bool weft_statics_meet_hole(const void *p, size_t bytes) {
    const struct weft_segment *statics = &weft_windows.statics;
    return statics->holes.count > 0 &&
           weft_holes_meet(&statics->holes, (uintptr_t)p - statics->window.local, bytes);
}

void weft_segment_free(struct weft_segment *segment);

/* Returns the address at which this PE can load and store pe's copy of [p, p + bytes). Returns NULL
 * if the range is not symmetric or no such PE is near. Tries the heap first; takes about a
 * nanosecond. */
static inline __attribute__((always_inline)) void *weft_near(const void *p, size_t bytes, int pe) {
    const struct weft_window *w = &weft_windows.heap.window;
    uintptr_t offset = (uintptr_t)p - w->local;
    size_t now = weft_window_bytes(w); /* a single load, so that the choice is the only branch */
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
#ifdef WEFT_THREAD_SANITIZER /* it identifies memory by address: own statics must have one address \
                              */
    if (slot == weft_windows.heap.mine)
        return (void *)p;
#endif
    void *near = weft_window_at(w, p, slot);
    if (!near) /* so that callers' tests for NULL are optimized away */
        __builtin_unreachable();
    return near;
}

#endif
