/* SPDX-License-Identifier: BSD-3-Clause */
/* Symmetric objects in GPU memory: growth, clearing and copying. */
#include <errno.h>
#include "base/size.h"
#include "core/arena.h"
#include "core/blocks.h"
#include "device/device.h"

enum { GROWTH_STEP = 2 << 20 }; /* the least that GPUs map */

static int heap_grow(size_t need, size_t bytes);
static bool heap_give_back(void);

static void heap_copy(void *to, const void *from, size_t bytes) {
    if (weft_gpu_memory_copy(weft_device.gpu, to, from, bytes))
        weft_job_panic_bare("%s", weft_fail_text());
}

struct weft_arena weft_device_arena = {
    .window = &weft_device.heap.window,
    .name = "the symmetric heap of GPU memory",
    .grow = heap_grow,
    .clear = weft_device_clear,
    .copy = heap_copy,
    .give_back = heap_give_back,
};

int weft_device_heap_open(void) {
    return weft_arena_open(&weft_device_arena, weft_device.heap.slot_bytes)
               ? weft_fail(-ENOMEM, "no memory")
               : 0;
}

void weft_device_heap_close(void) {
    weft_arena_close(&weft_device_arena);
}

/* Returns where the heap would end without the trailing extents that contain no object. */
static size_t heap_end_in_use(void) {
    return weft_gpu_window_end_of(&weft_device.heap,
                                  weft_blocks_used_end(weft_device_arena.blocks));
}

/* Frees whole extents from the end, because extents are the unit of mapping. The program's kernels
 * may still access freed objects: waits for those of this PE, while a peer's memory stays as long
 * as that peer has it mapped. */
static bool heap_give_back(void) {
    size_t end = heap_end_in_use();
    if (weft_arena_limit(&weft_device_arena) - end < WEFT_ARENA_IDLE_LEAST)
        return false;
    weft_device_finish();
    struct weft_gpu_scope scope = weft_gpu_enter(weft_device.gpu);
    weft_gpu_window_shrink(&weft_device.heap, end);
    weft_blocks_shrink(weft_device_arena.blocks, end);
    weft_gpu_leave(scope);
    return true;
}

static void heap_expect_return(void) {
    if (weft_arena_limit(&weft_device_arena) - heap_end_in_use() >= WEFT_ARENA_IDLE_LEAST)
        weft_arena_expect_return(&weft_device_arena);
}

/* Returns the memory of this PE's GPU that is still available for this PE. */
static size_t heap_available(void) {
    size_t available = 0, total;
    weft_cuda.cuMemGetInfo(&available, &total);
    return available / (size_t)weft_device.neighbours;
}

static size_t heap_step_up(size_t bytes) {
    size_t step =
        weft_device.gpu->granularity > GROWTH_STEP ? weft_device.gpu->granularity : GROWTH_STEP;
    return bytes > SIZE_MAX - step ? SIZE_MAX : (bytes + step - 1) / step * step;
}

/* Grows by half of the present size, to keep extents few, if every GPU has twice that available. */
static size_t heap_growth(size_t have, size_t need) {
    size_t least = weft_sync_min(weft_team_find(SHMEM_TEAM_WORLD), heap_available());
    size_t generous = heap_step_up(have / 2);
    return generous > need - have && generous <= least / 2 ? generous : need - have;
}

static int heap_grow(size_t need, size_t bytes) {
    (void)bytes;
    size_t have = weft_arena_limit(&weft_device_arena);
    if (need > weft_device.heap.slot_bytes)
        return weft_fail(
            -ENOMEM,
            "the symmetric heap of GPU memory would need %s, and a PE has %s of addresses for it",
            weft_size(need).text, weft_size(weft_device.heap.slot_bytes).text);
    int error = weft_device_extend(&weft_device.heap, heap_growth(have, heap_step_up(need)));
    if (error == 0)
        weft_arena_extend(&weft_device_arena, weft_window_bytes(&weft_device.heap.window));
    return error;
}

void *weft_device_malloc(struct weft_arena *arena, size_t bytes, size_t alignment, bool zero) {
    struct weft_gpu_scope scope = weft_gpu_enter(weft_device.gpu);
    void *p = weft_arena_malloc(arena, bytes, alignment, zero);
    weft_gpu_leave(scope);
    return p;
}

void weft_device_free(struct weft_arena *arena, void *p) {
    weft_arena_free(arena, p);
    heap_expect_return();
}

void *weft_device_realloc(struct weft_arena *arena, void *p, size_t bytes) {
    struct weft_gpu_scope scope = weft_gpu_enter(weft_device.gpu);
    void *moved = weft_arena_realloc(arena, p, bytes);
    weft_gpu_leave(scope);
    heap_expect_return();
    return moved;
}
