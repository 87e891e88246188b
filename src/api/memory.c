/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory management. What a size or an alignment makes fail, it makes fail on every PE alike, so
 * NULL comes back without a barrier; so does the NULL for no bytes. */
#include "api/memory.h"
#include "core/blocks.h"
#include "core/heap.h"
#include "core/window.h"
#include "api/checked.h"
#include "api/define.h"

/* An object is named by its offset: addresses differ from PE to PE. Calls that do nothing are not
 * collective. */
static void check_same(const char *call, const void *ptr, size_t size) {
    uintptr_t offset = ptr ? (uintptr_t)ptr - weft_windows.heap.window.local : 0;
    const struct weft_same same[] = {
        {"ptr (offset in the heap)", (int64_t)offset}, {"size", (int64_t)size}, {NULL, 0}};
    weft_checked_collective(call, weft_team_find(SHMEM_TEAM_WORLD), same);
}

static void *allocate(const char *call, size_t size, size_t alignment, bool zero) {
    WEFT_ENTER(call);
    if (weft_checked() && size != 0)
        check_same(call, NULL, size);
    return size == 0 ? NULL : weft_heap_malloc(size, alignment, zero, call);
}

void *weft_memory_malloc(const char *call, size_t size) {
    return allocate(call, size, WEFT_BLOCK_ALIGN, false);
}

void *weft_memory_align(const char *call, size_t alignment, size_t size) {
    bool power_of_two = alignment != 0 && (alignment & (alignment - 1)) == 0;
    if (!power_of_two || alignment % sizeof(void *) != 0 || alignment > WEFT_SEGMENT_ALIGN)
        return NULL;
    return allocate(call, size, alignment, false);
}

void *weft_memory_realloc(const char *call, void *ptr, size_t size) {
    if (!ptr)
        return weft_memory_malloc(call, size);
    WEFT_ENTER(call);
    if (weft_checked())
        check_same(call, ptr, size);
    if (size != 0)
        return weft_heap_realloc(ptr, size, call);
    weft_heap_free(ptr, call);
    return NULL;
}

void weft_memory_free(const char *call, void *ptr) {
    WEFT_ENTER(call);
    if (weft_checked() && ptr)
        check_same(call, ptr, 0);
    if (ptr)
        weft_heap_free(ptr, call);
}

API(void *, malloc, (size_t size)) {
    return weft_memory_malloc(__func__, size);
}

/* Every object may be the target of atomics and signals: there is nothing to prefer. */
API(void *, malloc_with_hints, (size_t size, long hints)) {
    (void)hints;
    return weft_memory_malloc(__func__, size);
}

API(void *, calloc, (size_t count, size_t size)) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes))
        return NULL;
    return allocate(__func__, bytes, WEFT_BLOCK_ALIGN, true);
}

API(void *, align, (size_t alignment, size_t size)) {
    return weft_memory_align(__func__, alignment, size);
}

API(void *, realloc, (void *ptr, size_t size)) {
    return weft_memory_realloc(__func__, ptr, size);
}

API(void, free, (void *ptr)) {
    weft_memory_free(__func__, ptr);
}
