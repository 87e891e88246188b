/* SPDX-License-Identifier: BSD-3-Clause */
#include "device/device.h"
#include "base/host_memory.h"

struct weft_device weft_device;

const struct weft_gpu *weft_device_agent(int pe) {
    return weft_gpu_agent_of(weft_device.peers[pe].ordinal);
}

/* The driver refuses to synchronise while a stream is captured. So if the program ends the job
 * during a capture, its work on the GPU is not waited for. */
void weft_device_finish(void) {
    if (!weft_device.gpu)
        return;
    struct weft_gpu_scope scope = weft_gpu_enter(weft_device.gpu);
    weft_cuda.cuCtxSynchronize();
    weft_gpu_leave(scope);
}

void weft_device_clear(void *p, size_t bytes) {
    if (weft_gpu_memory_clear(weft_device.gpu, (uintptr_t)p, bytes))
        weft_job_panic_bare("%s", weft_fail_text());
}

void *weft_device_near(const void *p, size_t bytes, int pe) {
    const struct weft_window *w = &weft_device.heap.window;
    if (!weft_window_holds(w, p, bytes))
        return weft_near(p, bytes, pe);
    uint32_t slot = weft_window_slot(w, pe);
    return slot < w->count ? weft_window_at(w, p, slot) : NULL;
}

void *weft_device_pointer(const void *p, int pe) {
    void *near = weft_device.open ? weft_device_near(p, 0, pe) : NULL;
    if (!near || weft_device_holds(p))
        return near && weft_device_staged(pe) ? NULL : near;
    struct weft_gpu_scope scope = weft_gpu_enter(weft_device.gpu);
    bool reached = weft_device_reaches(near);
    weft_gpu_leave(scope);
    return reached ? near : NULL;
}

/* Returns whether the address is GPU memory of the program. Asks the driver, which requires the
 * current context. */
static bool program_memory_is_device(const void *p) {
    struct weft_gpu_scope scope = weft_gpu_enter(weft_device.gpu);
    bool device = weft_gpu_memory_kind(p) == WEFT_MEMORY_DEVICE;
    weft_gpu_leave(scope);
    return device;
}

bool weft_device_concerns(const void *symmetric, const void *local) {
    if (weft_device_holds(symmetric) || weft_device_holds(local))
        return true;
    if (weft_window_holds(&weft_windows.heap.window, local, 0) ||
        weft_window_holds(&weft_windows.statics.window, local, 0) || weft_host_memory_holds(local))
        return false;
    return program_memory_is_device(local);
}

/* Returns whether p lies in the device heap of any PE. */
static bool device_heap_has(const void *p) {
    const struct weft_window *heap = &weft_device.heap.window;
    size_t offset;
    return weft_window_slot_of(heap, p, &offset) < heap->count;
}

static bool gpu_memory_has(const void *p) {
    return device_heap_has(p) || weft_gpu_memory_kind(p) == WEFT_MEMORY_DEVICE;
}

/* Memory of a PE on the same GPU is as near as this PE's own. */
enum weft_direction weft_device_direction(const void *to, const void *from, int pe) {
    bool near = pe == weft_job.pe || (weft_device.peers && weft_device.peers[pe].same);
    if (!gpu_memory_has(to))
        return WEFT_TO_HOST;
    if (!gpu_memory_has(from))
        return WEFT_FROM_HOST;
    if (near)
        return WEFT_WITHIN;
    return device_heap_has(to) && !weft_device_holds(to) ? WEFT_TO_PEER : WEFT_FROM_PEER;
}
