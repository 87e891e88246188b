/* SPDX-License-Identifier: BSD-3-Clause */
/* The allocator of core/heap.c once more, over GPU memory: it knows offsets alone. */
#include <errno.h>
#include <stdint.h>
#include "base/log.h"
#include "core/blocks.h"
#include "core/device.h"
#include "core/job.h"
#include "core/order.h"
#include "core/team.h"

enum { GROWTH_STEP = 2 << 20 }; /* what GPUs map at least */

static struct weft_blocks *blocks;

static struct weft_team *world(void) {
    return weft_team_find(SHMEM_TEAM_WORLD);
}

static void device_barrier(const char *call) {
    weft_quiet();
    weft_sync_barrier(world(), call);
}

int weft_device_heap_open(const char *call) {
    blocks = weft_blocks_new(weft_device.heap.slot_bytes);
    return blocks ? 0 : weft_fail(-ENOMEM, "%s: no memory", call);
}

void weft_device_heap_close(void) {
    weft_blocks_free(blocks);
    blocks = NULL;
}

/* Bytes that the GPU of this PE still has for it. */
static size_t available(void) {
    size_t available = 0, total;
    weft_cuda.cuMemGetInfo(&available, &total);
    return available / (size_t)weft_device.neighbours;
}

static size_t round_up_to_step(size_t bytes) {
    size_t step = weft_gpu.granularity > GROWTH_STEP ? weft_gpu.granularity : GROWTH_STEP;
    return bytes > SIZE_MAX - step ? SIZE_MAX : (bytes + step - 1) / step * step;
}

/* By half of what there is, so that extents stay few, if every GPU has twice that. */
static size_t growth(size_t have, size_t need, const char *call) {
    size_t least = weft_sync_min(world(), available(), call);
    size_t generous = round_up_to_step(have / 2);
    return generous > need - have && generous <= least / 2 ? generous : need - have;
}

static int grow(size_t need, const char *call) {
    size_t have = weft_blocks_limit(blocks);
    if (need > weft_device.heap.slot_bytes)
        return weft_fail(-ENOMEM,
                         "%s: the symmetric heap of GPU memory would need %zu bytes, and a "
                         "PE has %zu bytes of addresses for it",
                         call, need, weft_device.heap.slot_bytes);
    int error = weft_device_extend(&weft_device.heap, growth(have, need, call), call);
    if (error == 0)
        weft_blocks_extend(blocks, weft_window_bytes(&weft_device.heap.window));
    return error;
}

static void *address_of(size_t offset) {
    return (void *)(weft_device.heap.window.local + offset);
}

static size_t offset_of(const void *p, const char *call) {
    size_t offset = (uintptr_t)p - weft_device.heap.window.local;
    if (weft_blocks_size(blocks, offset) == 0)
        weft_job_panic("%s: argument ptr is %p, no live allocation of GPU memory: freed before, or "
                       "inside an object",
                       call, p);
    return offset;
}

static size_t take(size_t bytes, size_t alignment, const char *call) {
    size_t offset = weft_blocks_take(blocks, bytes, alignment);
    if (offset != WEFT_BLOCK_NONE)
        return offset;
    size_t capacity = weft_device.heap.slot_bytes, need = SIZE_MAX;
    if (bytes <= capacity && alignment <= capacity)
        need = round_up_to_step(weft_blocks_limit_for(blocks, bytes, alignment));
    return grow(need, call) ? WEFT_BLOCK_NONE : weft_blocks_take(blocks, bytes, alignment);
}

void weft_device_clear(void *p, size_t bytes, const char *call) {
    int error = weft_cuda.cuMemsetD8Async((uintptr_t)p, 0, bytes, weft_gpu.stream);
    if (error == 0)
        error = weft_cuda.cuStreamSynchronize(weft_gpu.stream);
    if (error)
        weft_job_panic("%s: cannot clear GPU memory: %s", call, weft_cuda_error(error));
}

void *weft_device_malloc(size_t bytes, size_t alignment, bool zero, const char *call) {
    if (weft_device_open(call) < 0)
        return NULL;
    struct weft_gpu_scope scope = weft_gpu_enter();
    size_t offset = take(bytes, alignment, call);
    if (offset != WEFT_BLOCK_NONE && zero)
        weft_device_clear(address_of(offset), bytes, call);
    weft_gpu_leave(scope);
    device_barrier(call);
    return offset == WEFT_BLOCK_NONE ? NULL : address_of(offset);
}

void weft_device_free(void *p, const char *call) {
    device_barrier(call); /* no PE may still be using it */
    weft_blocks_give(blocks, offset_of(p, call));
}

/* The contents move by the GPU; where the old place has room they stay. */
void *weft_device_realloc(void *p, size_t bytes, const char *call) {
    device_barrier(call);
    size_t old = offset_of(p, call), old_bytes = weft_blocks_size(blocks, old);
    if (bytes <= old_bytes && bytes > old_bytes / 2) {
        weft_blocks_resize(blocks, old, bytes);
        device_barrier(call);
        return p;
    }
    struct weft_gpu_scope scope = weft_gpu_enter();
    size_t offset = take(bytes, WEFT_BLOCK_ALIGN, call);
    if (offset != WEFT_BLOCK_NONE) {
        if (weft_device_copy(address_of(offset), p, bytes < old_bytes ? bytes : old_bytes, call))
            weft_job_panic("%s", weft_fail_text());
        weft_blocks_give(blocks, old);
    }
    weft_gpu_leave(scope);
    device_barrier(call);
    return offset == WEFT_BLOCK_NONE ? NULL : address_of(offset);
}

bool weft_device_find(const void *p, void **begin, size_t *bytes) {
    size_t offset;
    bool used =
        weft_blocks_find(blocks, (uintptr_t)p - weft_device.heap.window.local, &offset, bytes);
    *begin = used ? address_of(offset) : NULL;
    return used;
}
