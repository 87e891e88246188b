/* SPDX-License-Identifier: BSD-3-Clause */
/* The host's symmetric memory, own and peers', within the GPU's reach: registered piece by piece as
 * it is committed. What CUDA refuses is copied by copy engines, and out of kernels' reach. */
#include "device/host.h"
#include <stdbool.h>
#include <string.h>
#include "core/pin.h"
#include "device/device.h"

/* Pieces of each slot of the host heap that are registered, and whether the statics are. */
static struct {
    size_t bytes;
    unsigned npieces;
    size_t pieces[2 * WEFT_EXTENTS_MAX]; /* where each begins */
    bool statics, refused;
} registered;

static void *heap_slot_at(uint32_t slot) {
    return weft_window_slot_begin(&weft_windows.heap.window, slot);
}

/* GPUs then reach host memory by copies alone, and their kernels not at all: said once. */
static bool memory_register(void *at, size_t bytes) {
    if (weft_gpu_register(at, bytes) == 0)
        return true;
    if (!registered.refused)
        weft_log("%s: kernels cannot reach symmetric memory of the host", weft_fail_text());
    registered.refused = true;
    return false;
}

void weft_device_register_heap(const char *call) {
    size_t now = weft_window_bytes(&weft_windows.heap.window), begin = registered.bytes;
    if (now <= begin || registered.refused)
        return;
    if (begin == 0)
        weft_pin_announce(call);
    if (registered.npieces == sizeof registered.pieces / sizeof *registered.pieces) {
        registered.refused = true;
        weft_log("the symmetric heap has grown %u times: kernels cannot reach what is new; set "
                 "SHMEM_SYMMETRIC_SIZE to what the program needs",
                 registered.npieces);
        return;
    }
    struct weft_gpu_scope scope = weft_gpu_enter(weft_device.gpu);
    for (uint32_t slot = 0; slot < weft_windows.heap.window.count; slot++)
        if (!memory_register((char *)heap_slot_at(slot) + begin, now - begin))
            break;
    registered.pieces[registered.npieces++] = begin;
    registered.bytes = now;
    weft_gpu_leave(scope);
}

/* In place, where the program has them; and the peers'. */
void weft_device_register_statics(void) {
    const struct weft_segment *statics = &weft_windows.statics;
    size_t bytes = statics->window.bytes;
    if (bytes == 0 || registered.refused)
        return;
    registered.statics = true;
    memory_register((void *)statics->window.local, bytes);
    for (uint32_t slot = 0; weft_segment_is_mapped(statics) && slot < statics->window.count; slot++)
        memory_register(weft_window_slot_begin(&statics->window, slot), bytes);
}

void weft_device_unregister_all(void) {
    const struct weft_segment *statics = &weft_windows.statics;
    for (unsigned piece = 0; piece < registered.npieces; piece++)
        for (uint32_t slot = 0; slot < weft_windows.heap.window.count; slot++)
            weft_gpu_unregister((char *)heap_slot_at(slot) + registered.pieces[piece]);
    if (registered.statics)
        weft_gpu_unregister((void *)statics->window.local);
    for (uint32_t slot = 0;
         registered.statics && weft_segment_is_mapped(statics) && slot < statics->window.count;
         slot++)
        weft_gpu_unregister(weft_window_slot_begin(&statics->window, slot));
    memset(&registered, 0, sizeof registered);
}
