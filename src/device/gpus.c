/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include "transport/gpu_kernel.h"
#include "device/device.h"

enum { OTHERS_MAX = 64 };

/* A reader finds the entries below `count` complete. */
static struct {
    pthread_mutex_t changing;
    struct weft_gpu *list[OTHERS_MAX];
    _Atomic int count;
} others = {.changing = PTHREAD_MUTEX_INITIALIZER};

static int ordinal_check(int ordinal) {
    int count = 0;
    int error = weft_cuda_check(weft_cuda.cuDeviceGetCount(&count), "counting GPUs");
    if (error || (ordinal >= 0 && ordinal < count && ordinal < OTHERS_MAX))
        return error;
    return weft_fail(-EINVAL, "argument gpu is %d: CUDA sees %d GPUs here, pass 0 to %d", ordinal,
                     count, count - 1);
}

static bool other_is_open(int ordinal) {
    for (int i = 0; i < atomic_load(&others.count); i++)
        if (others.list[i]->ordinal == ordinal)
            return true;
    return false;
}

/* Opens a GPU that is not open yet, and adds it to the list. Called under the lock. */
static int other_open(int ordinal) {
    int count = atomic_load(&others.count);
    int error = weft_gpu_kernels_open(&others.list[count], ordinal);
    if (error == 0)
        atomic_store(&others.count, count + 1);
    return error;
}

int weft_device_gpu_use(int ordinal) {
    int error = weft_device_begin();
    if (error || ordinal == WEFT_DEVICE_OWN || (error = ordinal_check(ordinal)) != 0)
        return error;
    pthread_mutex_lock(&others.changing);
    if (ordinal != weft_device.gpu->ordinal && !other_is_open(ordinal))
        error = other_open(ordinal);
    pthread_mutex_unlock(&others.changing);
    return error;
}

int weft_device_gpu_open(struct weft_gpu **gpu, int ordinal) {
    int error = weft_device_gpu_use(ordinal);
    if (error)
        return error;
    return weft_gpu_open(gpu, ordinal == WEFT_DEVICE_OWN ? weft_device.gpu->ordinal : ordinal);
}

const struct weft_gpu *weft_device_gpu_here(void) {
    int count = atomic_load_explicit(&others.count, memory_order_acquire);
    weft_cu_context current = NULL;
    if (count > 0)
        weft_cuda.cuCtxGetCurrent(&current);
    for (int i = 0; i < count; i++)
        if (others.list[i]->context == current)
            return others.list[i];
    return weft_device.gpu;
}

void weft_device_gpus_finish(void) {
    weft_device_finish();
    for (int i = 0; i < atomic_load(&others.count); i++) {
        struct weft_gpu_scope scope = weft_gpu_enter(others.list[i]);
        weft_cuda.cuCtxSynchronize();
        weft_gpu_leave(scope);
    }
}

void weft_device_gpus_close(void) {
    for (int i = atomic_exchange(&others.count, 0); i-- > 0;)
        weft_gpu_kernels_close(others.list[i]);
}
