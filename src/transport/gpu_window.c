/* SPDX-License-Identifier: BSD-3-Clause */
/* The driver keeps physical memory alive as long as it is mapped anywhere. So a handle is released
 * as soon as its memory is mapped and exported, and only the mapping is kept. */
#include "transport/gpu_window.h"
#include <errno.h>
#include "base/size.h"
#include "transport/gpu_memory.h"

int weft_gpu_window_alloc(struct weft_gpu_window *window, uint32_t count, size_t slot_bytes) {
    size_t stride = weft_power_of_two_up(weft_gpu_memory_granules(window->gpu, slot_bytes));
    weft_cu_address base;
    int error = weft_cuda_check(weft_cuda.cuMemAddressReserve(&base, count * stride, stride, 0, 0),
                                "cuMemAddressReserve");
    if (error)
        return error;
    window->slot_bytes = stride;
    window->window = weft_window_make(base, stride, count, base + window->mine * stride);
    return 0;
}

static weft_cu_address slot_address(const struct weft_gpu_window *window, uint32_t slot) {
    return (weft_cu_address)weft_window_slot_begin(&window->window, slot);
}

static size_t window_committed(const struct weft_gpu_window *window) {
    if (window->nextents == 0)
        return 0;
    const struct weft_gpu_extent *last = &window->extents[window->nextents - 1];
    return last->offset + last->bytes;
}

int weft_gpu_window_commit(struct weft_gpu_window *window, size_t bytes, int *fd) {
    size_t offset = window_committed(window);
    if (bytes > window->slot_bytes - offset || window->nextents == WEFT_GPU_EXTENTS_MAX)
        return weft_fail(-ENOSPC, "the window of GPU memory is full: %s of %s, %u of %d extents",
                         weft_size(offset).text, weft_size(window->slot_bytes).text,
                         window->nextents, WEFT_GPU_EXTENTS_MAX);
    struct weft_gpu_memory memory = {.gpu = window->gpu,
                                     .at = slot_address(window, window->mine) + offset,
                                     .bytes = weft_gpu_memory_granules(window->gpu, bytes)};
    int error = weft_gpu_memory_create(&memory);
    if (error)
        return error;
    error = weft_gpu_memory_map(&memory, NULL);
    if (error == 0) {
        window->extents[window->nextents++] = (struct weft_gpu_extent){offset, memory.bytes};
        error = weft_gpu_memory_clear(memory.gpu, memory.at, memory.bytes);
        if (error == 0)
            error = weft_gpu_memory_export(memory.handle, fd);
        if (error)
            weft_gpu_window_retract(window);
    }
    weft_cuda.cuMemRelease(memory.handle);
    return error;
}

int weft_gpu_window_attach(struct weft_gpu_window *window, uint32_t slot, int fd,
                           const struct weft_gpu_peer *owner) {
    const struct weft_gpu_extent *last = &window->extents[window->nextents - 1];
    struct weft_gpu_memory memory = {
        .gpu = window->gpu, .at = slot_address(window, slot) + last->offset, .bytes = last->bytes};
    int error = weft_gpu_memory_import(&memory.handle, fd);
    if (error)
        return error;
    error = weft_gpu_memory_map(&memory, owner);
    weft_cuda.cuMemRelease(memory.handle);
    return error;
}

void weft_gpu_window_expect(struct weft_gpu_window *window, size_t bytes) {
    size_t offset = window_committed(window);
    window->extents[window->nextents++] = (struct weft_gpu_extent){offset, bytes};
}

/* Unmaps an extent from all slots. For a slot that was never attached the driver returns an error,
 * which is harmless. */
static void extent_unmap(struct weft_gpu_window *window, const struct weft_gpu_extent *extent) {
    for (uint32_t slot = 0; slot < window->window.count; slot++)
        weft_cuda.cuMemUnmap(slot_address(window, slot) + extent->offset, extent->bytes);
}

void weft_gpu_window_retract(struct weft_gpu_window *window) {
    extent_unmap(window, &window->extents[--window->nextents]);
}

size_t weft_gpu_window_end_of(const struct weft_gpu_window *window, size_t used) {
    size_t end = 0;
    for (unsigned i = 0; i < window->nextents && window->extents[i].offset < used; i++)
        end = window->extents[i].offset + window->extents[i].bytes;
    return end;
}

static void window_show(struct weft_gpu_window *window, size_t bytes) {
    __atomic_store_n(&window->window.bytes, bytes, __ATOMIC_RELAXED);
}

void weft_gpu_window_show(struct weft_gpu_window *window) {
    window_show(window, window_committed(window));
}

void weft_gpu_window_shrink(struct weft_gpu_window *window, size_t end) {
    window_show(window, end);
    while (window_committed(window) > end)
        weft_gpu_window_retract(window);
}

void weft_gpu_window_free(struct weft_gpu_window *window) {
    if (window->slot_bytes) {
        while (window->nextents > 0)
            weft_gpu_window_retract(window);
        weft_cuda.cuMemAddressFree(slot_address(window, 0),
                                   window->window.count * window->slot_bytes);
    }
    *window = (struct weft_gpu_window){.slot_bytes = 0};
}
