/* SPDX-License-Identifier: BSD-3-Clause */
/* Bringing GPUs up is a row of agreements: each PE does its own part, then all hear whether all
 * could. A PE that fails says why; the others say which PE it was. */
#include "device/device.h"
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/env.h"
#include "base/log.h"
#include "base/private.h"
#include "boot/boot.h"
#include "core/job.h"
#include "core/team.h"
#include "core/window.h"
#include "transport/gpu_kernel.h"
#include "transport/gpu_lane.h"
#include "transport/gpu_rescue.h"
#include "transport/gpu_side.h"

struct weft_device weft_device;

static pthread_mutex_t beginning = PTHREAD_MUTEX_INITIALIZER;
static _Atomic bool begun; /* this PE's GPU is open, with all that calls of any thread need */

static struct weft_team *world(void) {
    return weft_team_find(SHMEM_TEAM_WORLD);
}

/* Whether all PEs have come so far: 0, this PE's own error with its text, or that of another. */
static int agree(int error, const char *call) {
    uint64_t culprit = error ? (uint64_t)weft_job.pe : UINT64_MAX;
    culprit = weft_sync_min(world(), culprit, call);
    if (error || culprit == UINT64_MAX)
        return error;
    return weft_fail(-ENODEV, "%s: PE %d could not, and says why in its weft_last_error()", call,
                     (int)culprit);
}

/* --- Which GPU -------------------------------------------------------------------------------- */

/* -1: whichever. */
static int wanted_ordinal(int *ordinal, const char *call) {
    *ordinal = -1;
    if (strcmp(weft_env.device, "auto") == 0)
        return 0;
    char *end;
    long number = strtol(weft_env.device, &end, 10);
    if (end == weft_env.device || *end || number < 0 || number > INT16_MAX)
        return weft_fail(-EINVAL,
                         "%s: SHMEMX_DEVICE is '%s': set it to auto or to the number of a GPU",
                         call, weft_env.device);
    *ordinal = (int)number;
    return 0;
}

/* What PEs tell each other of their GPUs. */
struct device_facts {
    struct weft_cu_uuid uuid;
    uint64_t memory_bytes, granularity;
};

/* The largest memory makes the slots, the largest granule the extents: they are alike on all PEs.
 */
static void take_facts(const struct device_facts *all, size_t *slot_bytes) {
    int before = 0; /* of the PEs on this GPU */
    *slot_bytes = 0;
    weft_device.neighbours = 0;
    for (int pe = 0; pe < weft_job.npes; pe++) {
        weft_device.peers[pe] = weft_gpu_peer_of(&all[pe].uuid);
        weft_device.neighbours += weft_device.peers[pe].same;
        before += weft_device.peers[pe].same && pe < weft_job.pe;
        if (all[pe].memory_bytes > *slot_bytes)
            *slot_bytes = all[pe].memory_bytes;
        if (all[pe].granularity > weft_gpu.granularity)
            weft_gpu.granularity = all[pe].granularity;
    }
    weft_gpu_rescue_take_turns(before, weft_device.neighbours);
}

const struct weft_gpu_agent *weft_device_agent(int pe, const char *call) {
    return weft_gpu_agent_of(weft_device.peers[pe].ordinal, call);
}

/* Those that this PE cannot do without. */
static int open_agents(const char *call) {
    int error = 0;
    for (int pe = 0; pe < weft_job.npes && error == 0; pe++)
        if (weft_gpu_peer_staged(&weft_device.peers[pe]) && !weft_device_agent(pe, call))
            error = -ENODEV;
    return error;
}

static bool has_staged(void) {
    bool has = false;
    for (int pe = 0; pe < weft_job.npes; pe++)
        has |= weft_gpu_peer_staged(&weft_device.peers[pe]);
    return has;
}

static int meet(size_t *slot_bytes, const char *call) {
    size_t npes = (size_t)weft_job.npes;
    struct device_facts mine = {weft_gpu.uuid, weft_gpu.memory_bytes, weft_gpu.granularity};
    struct device_facts *all = calloc(npes, sizeof *all);
    weft_device.peers = calloc(npes, sizeof *weft_device.peers);
    int error = all && weft_device.peers ? 0 : weft_fail(-ENOMEM, "%s: no memory", call);
    error = agree(error, call);
    if (error == 0 &&
        (error = weft_boot_exchange(call, &mine, sizeof mine, all, NULL, 0, NULL)) == 0)
        take_facts(all, slot_bytes);
    free(all);
    if (error)
        return error;
    weft_device.staged = weft_sync_min(world(), !has_staged(), call) == 0;
    return agree(open_agents(call), call);
}

/* --- Windows ---------------------------------------------------------------------------------- */

/* What the driver says of memory that it cannot give to this PE's GPU is not enough. */
static int explain(int error, int pe, const char *call) {
    char text[256];
    snprintf(text, sizeof text, "%s", weft_fail_text());
    if (weft_device.peers[pe].ordinal >= 0)
        return error;
    return weft_fail(error,
                     "%s: the GPU of PE %d is hidden from this PE (CUDA_VISIBLE_DEVICES), and its "
                     "memory seems to be out of reach: show all GPUs to all PEs, then what cannot "
                     "go directly goes through memory of the host (%s)",
                     call, pe, text);
}

static int attach_peers(struct weft_gpu_window *window, const int *fds, const char *call) {
    int error = 0;
    for (int pe = 0; pe < weft_job.npes; pe++) {
        const struct weft_gpu_peer *peer = &weft_device.peers[pe];
        if (pe != weft_job.pe && error == 0 &&
            (error = weft_gpu_window_attach(window, (uint32_t)pe, fds[pe], peer, call)) != 0)
            error = explain(error, pe, call);
        close(fds[pe]);
    }
    return error;
}

/* Every PE's extent to every PE. The own memory is there on all. */
static int exchange_extent(struct weft_gpu_window *window, int fd, const char *call) {
    size_t npes = (size_t)weft_job.npes;
    int *fds = calloc(npes, sizeof *fds);
    char mine = 0, *all = malloc(npes); /* a message has something in it */
    int error = agree(fds && all ? 0 : weft_fail(-ENOMEM, "%s: no memory", call), call);
    if (error == 0)
        error = weft_boot_exchange(call, &mine, sizeof mine, all, &fd, 1, fds);
    if (error == 0)
        error = agree(attach_peers(window, fds, call), call);
    free(fds);
    free(all);
    return error;
}

int weft_device_extend(struct weft_gpu_window *window, size_t bytes, const char *call) {
    int fd = -1, own = weft_gpu_window_commit(window, bytes, &fd, call);
    int error = agree(own, call);
    if (error == 0)
        error = exchange_extent(window, fd, call);
    if (error && own == 0)
        weft_gpu_window_retract(window);
    if (error == 0)
        weft_gpu_window_show(window);
    if (fd >= 0)
        close(fd);
    return error;
}

static int agree_in_world(const void *call, int own) {
    return agree(own, call);
}

static int open_windows(size_t slot_bytes, const char *call) {
    int error = weft_gpu_window_alloc(&weft_device.heap, (uint32_t)weft_job.npes,
                                      (uint32_t)weft_job.pe, slot_bytes, call);
    error = agree(error, call);
    if (error == 0)
        error = weft_device_words_open(agree_in_world, call);
    return error ? error : agree(weft_device_heap_open(call), call);
}

/* --- Up and down ------------------------------------------------------------------------------ */

static int check_peer_access(const char *call) {
    if (strcmp(weft_env.peer_access, "auto") == 0 || strcmp(weft_env.peer_access, "off") == 0)
        return 0;
    return weft_fail(-EINVAL, "%s: SHMEMX_PEER_ACCESS is '%s': set it to auto or off", call,
                     weft_env.peer_access);
}

int weft_device_inspect(const char *call) {
    int wanted, error = check_peer_access(call);
    error = error ? error : wanted_ordinal(&wanted, call);
    return error ? error : weft_gpu_inspect(wanted, weft_job.pe);
}

static int begin(const char *call) {
    int wanted, error = check_peer_access(call);
    if (error || (error = wanted_ordinal(&wanted, call)) ||
        (error = weft_gpu_open(wanted, weft_job.pe)))
        return error;
    struct weft_gpu_scope scope = weft_gpu_enter();
    if ((error = weft_gpu_kernels_open()) == 0)
        error = weft_gpu_rescue_open(&weft_job.control->abort);
    if (error == 0) {
        weft_device_register_statics();
        weft_device_register_heap(call);
    } else {
        weft_gpu_kernels_close();
    }
    weft_gpu_leave(scope);
    if (error)
        weft_gpu_close();
    return error;
}

int weft_device_begin(const char *call) {
    int error = 0;
    if (atomic_load(&begun))
        return 0;
    pthread_mutex_lock(&beginning);
    if (!atomic_load(&begun) && (error = begin(call)) == 0)
        atomic_store(&begun, true);
    pthread_mutex_unlock(&beginning);
    return error;
}

void weft_device_heap_grown(const char *call) {
    pthread_mutex_lock(&beginning);
    if (atomic_load(&begun))
        weft_device_register_heap(call);
    pthread_mutex_unlock(&beginning);
}

/* What bring_up made. */
static void take_down(void) {
    weft_device_words_close();
    weft_gpu_window_free(&weft_device.heap);
    weft_device_heap_close();
    weft_gpu_lanes_close();
    weft_gpu_agents_close();
    free(weft_device.peers);
    weft_device = (struct weft_device){.open = false};
}

static int bring_up(const char *call) {
    size_t slot_bytes = 0;
    int error = agree(weft_device_begin(call), call);
    if (error)
        return error;
    struct weft_gpu_scope scope = weft_gpu_enter();
    if ((error = meet(&slot_bytes, call)) == 0)
        error = open_windows(slot_bytes, call);
    if (error) /* the GPU stays open: this PE may use it alone, on streams and in graphs */
        take_down();
    weft_gpu_leave(scope);
    return error;
}

int weft_device_open(const char *call) {
    if (weft_device.open)
        return 0;
    int error = bring_up(call);
    if (error)
        return error;
    weft_device.open = true;
    weft_job.devices = true;
    weft_job_set_detour();
    return 0;
}

/* While a stream is being captured the driver refuses, and the program has given that work up. */
void weft_device_finish(void) {
    if (!weft_gpu.open)
        return;
    struct weft_gpu_scope scope = weft_gpu_enter();
    weft_cuda.cuCtxSynchronize();
    weft_gpu_leave(scope);
}

void weft_device_close(void) {
    if (!weft_gpu.open)
        return;
    struct weft_gpu_scope scope = weft_gpu_enter();
    weft_gpu_rescue_close(); /* before anything is freed or waited for */
    weft_cuda.cuStreamSynchronize(weft_gpu.stream);
    weft_device_unregister_all();
    take_down();
    weft_gpu_sides_close();
    weft_gpu_kernels_close();
    weft_gpu_leave(scope);
    weft_job.devices = false;
    weft_job_set_detour();
    atomic_store(&begun, false);
    weft_gpu_close();
}

/* --- Addresses -------------------------------------------------------------------------------- */

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
    struct weft_gpu_scope scope = weft_gpu_enter();
    bool reached = weft_gpu_memory_kind(near) != WEFT_MEMORY_HOST;
    weft_gpu_leave(scope);
    return reached ? near : NULL;
}

/* GPU memory of the program's own: asked of the driver, which knows it by the current context. */
static bool is_program_device(const void *p) {
    struct weft_gpu_scope scope = weft_gpu_enter();
    bool device = weft_gpu_memory_kind(p) == WEFT_MEMORY_DEVICE;
    weft_gpu_leave(scope);
    return device;
}

bool weft_device_concerns(const void *symmetric, const void *local) {
    if (weft_device_holds(symmetric) || weft_device_holds(local))
        return true;
    if (weft_window_holds(&weft_windows.heap.window, local, 0) ||
        weft_window_holds(&weft_windows.statics.window, local, 0) || weft_private_holds(local))
        return false;
    return is_program_device(local);
}

/* In the part of any PE. */
static bool in_device_heap(const void *p) {
    const struct weft_window *heap = &weft_device.heap.window;
    size_t offset;
    return weft_window_slot_of(heap, p, &offset) < heap->count;
}

static bool in_gpu_memory(const void *p) {
    return in_device_heap(p) || weft_gpu_memory_kind(p) == WEFT_MEMORY_DEVICE;
}

/* Memory of a PE on the same GPU is as near as the own. */
enum weft_direction weft_device_direction(const void *to, const void *from, int pe) {
    bool near = pe == weft_job.pe || (weft_device.peers && weft_device.peers[pe].same);
    if (!in_gpu_memory(to))
        return WEFT_TO_HOST;
    if (!in_gpu_memory(from))
        return WEFT_FROM_HOST;
    if (near)
        return WEFT_WITHIN;
    return in_device_heap(to) && !weft_device_holds(to) ? WEFT_TO_PEER : WEFT_FROM_PEER;
}
