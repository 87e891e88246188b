/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory management. What a size or an alignment makes fail, it makes fail on every PE alike, so
 * NULL comes back without a barrier; so does the NULL for no bytes. */
#include "core/blocks.h"
#include "core/heap.h"
#include "api/misuse.h"

static void *allocate(const char *call, size_t size, size_t alignment, bool zero) {
    weft_check_running(call);
    return size == 0 ? NULL : weft_heap_malloc(size, alignment, zero, call);
}

void *shmem_malloc(size_t size) {
    return allocate(__func__, size, WEFT_BLOCK_ALIGN, false);
}

/* Every object may be the target of atomics and signals: there is nothing to prefer. */
void *shmem_malloc_with_hints(size_t size, long hints) {
    (void)hints;
    return allocate(__func__, size, WEFT_BLOCK_ALIGN, false);
}

void *shmem_calloc(size_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes))
        return NULL;
    return allocate(__func__, bytes, WEFT_BLOCK_ALIGN, true);
}

void *shmem_align(size_t alignment, size_t size) {
    bool power_of_two = alignment != 0 && (alignment & (alignment - 1)) == 0;
    if (!power_of_two || alignment % sizeof(void *) != 0)
        return NULL;
    return allocate(__func__, size, alignment, false);
}

void *shmem_realloc(void *ptr, size_t size) {
    if (!ptr)
        return allocate(__func__, size, WEFT_BLOCK_ALIGN, false);
    weft_check_running(__func__);
    if (size != 0)
        return weft_heap_realloc(ptr, size, __func__);
    weft_heap_free(ptr, __func__);
    return NULL;
}

void shmem_free(void *ptr) {
    weft_check_running(__func__);
    if (ptr)
        weft_heap_free(ptr, __func__);
}
