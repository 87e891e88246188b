/* SPDX-License-Identifier: BSD-3-Clause */
#include "device/begin.h"
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "base/env.h"
#include "transport/gpu_kernel.h"
#include "transport/gpu_rescue.h"
#include "transport/gpu_side.h"
#include "device/device.h"
#include "device/host.h"

static pthread_mutex_t beginning = PTHREAD_MUTEX_INITIALIZER;
static _Atomic bool begun; /* this PE's GPU is open, with all that calls of any thread need */

/* -1: whichever. */
static int ordinal_read(int *ordinal, const char *call) {
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

static int peer_access_check(const char *call) {
    if (strcmp(weft_env.peer_access, "auto") == 0 || strcmp(weft_env.peer_access, "off") == 0)
        return 0;
    return weft_fail(-EINVAL, "%s: SHMEMX_PEER_ACCESS is '%s': set it to auto or off", call,
                     weft_env.peer_access);
}

static int ordinal_choose(int *ordinal, const char *call) {
    int wanted, error = peer_access_check(call);
    error = error ? error : ordinal_read(&wanted, call);
    return error ? error : weft_gpu_choose(wanted, weft_job.pe, ordinal);
}

int weft_device_inspect(struct weft_gpu *gpu, const char *call) {
    int ordinal, error = ordinal_choose(&ordinal, call);
    return error ? error : weft_gpu_describe(gpu, ordinal);
}

static void own_gpu_close(void) {
    weft_gpu_close(weft_device.gpu);
    weft_device.gpu = NULL;
}

static int own_gpu_open(const char *call) {
    int ordinal, error = ordinal_choose(&ordinal, call);
    error = error ? error : weft_gpu_open(&weft_device.gpu, ordinal);
    if (error)
        return error;
    struct weft_gpu_scope scope = weft_gpu_enter(weft_device.gpu);
    if ((error = weft_gpu_kernels_open()) == 0)
        error = weft_gpu_rescue_open(weft_device.gpu, &weft_job.control->abort);
    if (error == 0) {
        weft_device_register_statics();
        weft_device_register_heap(call);
    } else {
        weft_gpu_kernels_close();
    }
    weft_gpu_leave(scope);
    if (error)
        own_gpu_close();
    return error;
}

int weft_device_begin(const char *call) {
    int error = 0;
    if (atomic_load(&begun))
        return 0;
    pthread_mutex_lock(&beginning);
    if (!atomic_load(&begun) && (error = own_gpu_open(call)) == 0)
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

void weft_device_end(void) {
    struct weft_gpu_scope scope = weft_gpu_enter(weft_device.gpu);
    weft_device_unregister_all();
    weft_gpu_sides_close();
    weft_gpu_kernels_close();
    weft_gpu_leave(scope);
    atomic_store(&begun, false);
    own_gpu_close();
}
