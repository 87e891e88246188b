/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory management, in the host's memory and GPUs'. A size or an alignment that is refused is
 * refused on every PE, so NULL is returned without a barrier; likewise for zero bytes. */
#include <errno.h>
#include <shmemx.h>
#include "base/size.h"
#include "job/made.h"
#include "core/arena.h"
#include "core/blocks.h"
#include "core/heap.h"
#include "core/order.h"
#include "api/body.h"
#include "api/checked.h"
#include "api/define.h"

/* Compares an object by its offset, because addresses differ from PE to PE. Calls that do nothing
 * are not collective. */
static void check_same(const void *ptr, const struct weft_heap *heap, size_t size) {
    shmemx_space_t space = heap == &weft_heap_host ? SHMEMX_SPACE_HOST : SHMEMX_SPACE_DEVICE;
    uintptr_t offset = ptr ? (uintptr_t)ptr - heap->window->local : 0;
    const struct weft_same same[] = {{"ptr (offset in the heap)", (int64_t)offset},
                                     {"size", (int64_t)size},
                                     {"space", (int64_t)space},
                                     {NULL, 0}};
    weft_consistency_check(weft_team_find(SHMEM_TEAM_WORLD), same);
}

/* Looks the object up first, because only an object has an offset to compare. */
static void check_same_object(const void *ptr, size_t size) {
    const struct weft_heap *heap = weft_heap_of(ptr);
    weft_arena_check(heap->arena, ptr);
    check_same(ptr, heap, size);
}

/* In checked mode, lists the object at the end of the job unless it is freed before. */
static void *note_object(void *p, size_t size) {
    if (weft_checked() && p && weft_job.pe == 0)
        weft_made_keep(WEFT_MADE_OBJECT, p, size);
    return p;
}

static void *allocate_object(size_t size, size_t alignment, bool zero) {
    weft_dispatch_quiet();
    if (weft_checked() && size != 0)
        check_same(NULL, &weft_heap_host, size);
    struct weft_arena *arena = weft_heap_host.arena;
    return size == 0 ? NULL : note_object(weft_arena_malloc(arena, size, alignment, zero), size);
}

void *weft_memory_malloc(size_t size) {
    return allocate_object(size, WEFT_BLOCK_ALIGN, false);
}

static bool is_alignment(size_t alignment, size_t most) {
    bool power_of_two = alignment != 0 && (alignment & (alignment - 1)) == 0;
    return power_of_two && alignment % sizeof(void *) == 0 && alignment <= most;
}

/* Returns the next alignment that the standard allows: programs ask for others, such as 4 and 63.
 * Returns 0 and values above `most` unchanged, so that the caller refuses them. Ends the job in
 * checked mode. */
static size_t next_alignment(size_t alignment, size_t most) {
    if (is_alignment(alignment, most) || alignment == 0 || alignment > most)
        return alignment;
    if (weft_checked())
        weft_job_panic("argument alignment is %zu: pass a power of two that is a multiple of %zu, "
                       "the size of a pointer",
                       alignment, sizeof(void *));
    size_t next = sizeof(void *);
    while (next < alignment)
        next *= 2;
    return next;
}

void *weft_memory_align(size_t alignment, size_t size) {
    alignment = next_alignment(alignment, WEFT_SEGMENT_ALIGN);
    if (!is_alignment(alignment, WEFT_SEGMENT_ALIGN))
        return NULL;
    return allocate_object(size, alignment, false);
}

/* Outside checked mode, a program that reallocates a freed object continues as with other
 * libraries: no object is touched. All PEs make the call, so only PE 0 logs it. */
static bool refuse_freed(const struct weft_heap *heap, const void *ptr) {
    if (!weft_arena_was_freed(heap->arena, ptr))
        return false;
    if (weft_job.pe == 0)
        weft_log("%s: argument ptr is %p, an object of %s that was freed before: the result is "
                 "NULL; with SHMEM_DEBUG=1 the job ends here and prints where this is",
                 weft_current_call, ptr, heap->arena->name);
    return true;
}

static void free_object(const struct weft_heap *heap, void *ptr) {
    heap->free(heap->arena, ptr);
    if (weft_checked())
        weft_made_forget(WEFT_MADE_OBJECT, ptr);
}

void *weft_memory_realloc(void *ptr, size_t size) {
    if (!ptr)
        return weft_memory_malloc(size);
    weft_dispatch_quiet();
    if (weft_checked())
        check_same_object(ptr, size);
    const struct weft_heap *heap = weft_heap_of(ptr);
    if (refuse_freed(heap, ptr))
        return NULL;
    if (size != 0) {
        void *moved = heap->realloc(heap->arena, ptr, size);
        if (weft_checked() && moved)
            weft_made_forget(WEFT_MADE_OBJECT, ptr);
        return note_object(moved, size);
    }
    free_object(heap, ptr);
    return NULL;
}

void weft_memory_free(void *ptr) {
    weft_dispatch_quiet();
    if (weft_checked() && ptr)
        check_same_object(ptr, 0);
    const struct weft_heap *heap = weft_heap_of(ptr);
    if (ptr)
        free_object(heap, ptr);
}

API(void *, malloc, (size_t size)) {
    WEFT_ENTER(__func__);
    return weft_memory_malloc(size);
}

/* Ignores the hints, because every object may be the target of atomics and signals. */
API(void *, malloc_with_hints, (size_t size, long hints)) {
    WEFT_ENTER(__func__);
    (void)hints;
    return weft_memory_malloc(size);
}

API(void *, calloc, (size_t count, size_t size)) {
    WEFT_ENTER(__func__);
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes))
        return NULL;
    return allocate_object(bytes, WEFT_BLOCK_ALIGN, true);
}

API(void *, align, (size_t alignment, size_t size)) {
    WEFT_ENTER(__func__);
    return weft_memory_align(alignment, size);
}

API(void *, realloc, (void *ptr, size_t size)) {
    WEFT_ENTER(__func__);
    return weft_memory_realloc(ptr, size);
}

API(void, free, (void *ptr)) {
    WEFT_ENTER(__func__);
    weft_memory_free(ptr);
}

/* --- Allocation in either space -------------------------------------------------------------- */

/* A GPU address is aligned as its pages are. */
enum { DEVICE_ALIGN_MAX = 2 << 20 };

static void *allocate_on_device(size_t size, size_t alignment, bool zero) {
    if (!weft_space_device) {
        weft_space_missing();
        return NULL;
    }
    weft_dispatch_quiet();
    const struct weft_heap *heap = &weft_space_device->heap;
    if (weft_checked()) /* must come before the GPUs are set up, which takes all PEs */
        check_same(NULL, heap, size);
    return note_object(heap->malloc(heap->arena, size, alignment, zero), size);
}

static void *allocate_on_host(size_t size, size_t alignment, bool zero) {
    void *p = allocate_object(size, alignment, zero);
    if (!p)
        weft_fail_bare(-ENOMEM, "%s of %s: the machine does not have that much memory for every PE",
                       weft_current_call, weft_size(size).text);
    return p;
}

/* An alignment of 0 means the default. */
static void *allocate_in(shmemx_space_t space, size_t size, size_t alignment, bool zero) {
    bool device = space == SHMEMX_SPACE_DEVICE;
    size_t most = device ? DEVICE_ALIGN_MAX : WEFT_SEGMENT_ALIGN;
    if (!device && space != SHMEMX_SPACE_HOST)
        weft_fail(-EINVAL, "argument space is %d: pass SHMEMX_SPACE_HOST or SHMEMX_SPACE_DEVICE",
                  (int)space);
    else if (alignment != 0 && !is_alignment(alignment, most))
        weft_fail(-EINVAL,
                  "argument alignment is %zu: pass a power of two from %zu to %zu for this space",
                  alignment, sizeof(void *), most);
    else if (size == 0)
        weft_fail_bare(-EINVAL, "%s of no bytes", weft_current_call);
    else
        return (device ? allocate_on_device : allocate_on_host)(
            size, alignment < WEFT_BLOCK_ALIGN ? WEFT_BLOCK_ALIGN : alignment, zero);
    return NULL;
}

void *shmemx_malloc(shmemx_space_t space, size_t size) {
    WEFT_ENTER(__func__);
    return allocate_in(space, size, 0, false);
}

void *shmemx_calloc(shmemx_space_t space, size_t count, size_t size) {
    WEFT_ENTER(__func__);
    size_t bytes;
    if (!__builtin_mul_overflow(count, size, &bytes))
        return allocate_in(space, bytes, 0, true);
    weft_fail(-EINVAL, "%zu elements of %zu bytes are more than memory has", count, size);
    return NULL;
}

/* Like shmem_align, refuses an alignment of 0. */
void *shmemx_align(shmemx_space_t space, size_t alignment, size_t size) {
    WEFT_ENTER(__func__);
    return allocate_in(space, size, alignment ? alignment : SIZE_MAX, false);
}
