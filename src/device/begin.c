/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "base/env.h"
#include "transport/gpu_kernel.h"
#include "transport/gpu_rescue.h"
#include "core/pin.h"
#include "device/device.h"

static pthread_mutex_t beginning = PTHREAD_MUTEX_INITIALIZER;
static _Atomic bool
    begun; /* this PE's GPU is open, with everything that calls of any thread need */

/* Reads SHMEMX_DEVICE; -1 means automatic. */
static int ordinal_read(int *ordinal) {
    *ordinal = -1;
    if (strcmp(weft_env.device, "auto") == 0)
        return 0;
    char *end;
    long number = strtol(weft_env.device, &end, 10);
    if (end == weft_env.device || *end || number < 0 || number > INT16_MAX)
        return weft_fail(-EINVAL, "SHMEMX_DEVICE is '%s': set it to auto or to the number of a GPU",
                         weft_env.device);
    *ordinal = (int)number;
    return 0;
}

static int peer_access_check(void) {
    if (strcmp(weft_env.peer_access, "auto") == 0 || strcmp(weft_env.peer_access, "off") == 0)
        return 0;
    return weft_fail(-EINVAL, "SHMEMX_PEER_ACCESS is '%s': set it to auto or off",
                     weft_env.peer_access);
}

/* Returns this PE's number among the PEs of its host, to which GPUs are assigned round robin. */
static int number_here(void) {
    int number = 0;
    for (int pe = 0; pe < weft_job.pe; pe++)
        number += weft_boot_is_here(pe);
    return number;
}

static int ordinal_choose(int *ordinal) {
    int wanted, error = peer_access_check();
    error = error ? error : ordinal_read(&wanted);
    return error ? error : weft_gpu_choose(wanted, number_here(), ordinal);
}

int weft_device_inspect(struct weft_gpu *gpu) {
    int ordinal, error = ordinal_choose(&ordinal);
    return error ? error : weft_gpu_describe(gpu, ordinal);
}

/* --- Registration of host memory --------------------------------------------------------------
 * The host's symmetric memory of this PE and its peers is registered with CUDA extent by extent, as
 * it is committed. Memory that CUDA refuses is copied by copy engines, and kernels cannot access
 * it. */

/* The registered extents of each slot of the host heap, and whether the statics are registered. */
static struct {
    size_t bytes;
    unsigned npieces;
    size_t pieces[2 * WEFT_EXTENTS_MAX]; /* the offset at which each begins */
    bool statics, refused;
} registered;

static void *heap_slot_at(uint32_t slot) {
    return weft_window_slot_begin(&weft_windows.heap.window, slot);
}

/* Registers memory. If CUDA refuses, GPUs access host memory only by copies; that is logged once.
 */
static bool memory_register(void *at, size_t bytes) {
    if (weft_gpu_register(at, bytes) == 0)
        return true;
    if (!registered.refused)
        weft_log("%s: kernels cannot reach symmetric host memory", weft_fail_text());
    registered.refused = true;
    return false;
}

/* Registers the part of the host heap that is new. The GPU must be open, and only one thread at a
 * time may call this. */
static void heap_register(void) {
    size_t now = weft_window_bytes(&weft_windows.heap.window), begin = registered.bytes;
    if (now <= begin || registered.refused)
        return;
    if (begin == 0)
        weft_pin_announce();
    if (registered.npieces == sizeof registered.pieces / sizeof *registered.pieces) {
        registered.refused = true;
        weft_log("the symmetric heap has grown %u times: kernels cannot reach its new memory; set "
                 "SHMEM_SYMMETRIC_SIZE to the size that the program needs",
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

static void statics_each_piece(char *slot, bool (*run)(void *at, size_t bytes)) {
    const struct weft_segment *statics = &weft_windows.statics;
    size_t begin, end = 0;
    while (weft_holes_next_piece(&statics->holes, end, statics->window.bytes, &begin, &end))
        run(slot + begin, end - begin);
}

/* Calls `run` for the statics at their place in the program, and for those of the peers. */
static void statics_each(bool (*run)(void *at, size_t bytes)) {
    const struct weft_segment *statics = &weft_windows.statics;
    statics_each_piece((char *)statics->window.local, run);
    for (uint32_t slot = 0; weft_segment_is_mapped(statics) && slot < statics->window.count; slot++)
        statics_each_piece(weft_window_slot_begin(&statics->window, slot), run);
}

/* Registers the statics of this PE and its peers, unless CUDA has refused memory before. Must be
 * called once only. */
static void statics_register(void) {
    const struct weft_segment *statics = &weft_windows.statics;
    if (statics->window.bytes == 0 || registered.refused)
        return;
    registered.statics = true;
    statics_each(memory_register);
}

static bool memory_unregister(void *at, size_t bytes) {
    (void)bytes;
    weft_gpu_unregister(at);
    return true;
}

static void host_unregister(void) {
    for (unsigned piece = 0; piece < registered.npieces; piece++)
        for (uint32_t slot = 0; slot < weft_windows.heap.window.count; slot++)
            weft_gpu_unregister((char *)heap_slot_at(slot) + registered.pieces[piece]);
    if (registered.statics)
        statics_each(memory_unregister);
    memset(&registered, 0, sizeof registered);
}

/* --- Opening and closing ---------------------------------------------------------------------- */

static void own_gpu_close(void) {
    weft_gpu_kernels_close(weft_device.gpu);
    weft_device.gpu = NULL;
}

static int own_gpu_open(void) {
    int ordinal, error = ordinal_choose(&ordinal);
    error = error ? error : weft_gpu_kernels_open(&weft_device.gpu, ordinal);
    if (error)
        return error;
    struct weft_gpu_scope scope = weft_gpu_enter(weft_device.gpu);
    if ((error = weft_gpu_rescue_open(weft_device.gpu, &weft_job.control->abort)) == 0) {
        statics_register();
        heap_register();
    }
    weft_gpu_leave(scope);
    if (error)
        own_gpu_close();
    return error;
}

int weft_device_begin(void) {
    int error = 0;
    if (atomic_load(&begun))
        return 0;
    pthread_mutex_lock(&beginning);
    if (!atomic_load(&begun) && (error = own_gpu_open()) == 0)
        atomic_store(&begun, true);
    pthread_mutex_unlock(&beginning);
    return error;
}

void weft_device_heap_grown(void) {
    pthread_mutex_lock(&beginning);
    if (atomic_load(&begun))
        heap_register();
    pthread_mutex_unlock(&beginning);
}

void weft_device_end(void) {
    struct weft_gpu_scope scope = weft_gpu_enter(weft_device.gpu);
    host_unregister();
    weft_gpu_lanes_close(NULL);
    weft_gpu_leave(scope);
    atomic_store(&begun, false);
    own_gpu_close();
}
