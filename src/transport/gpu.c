/* SPDX-License-Identifier: BSD-3-Clause */
/* Opening GPUs, and their properties. */
#include "transport/gpu.h"
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "base/env.h"
#include "base/host_memory.h"

static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;
static struct weft_gpu *_Atomic open_gpus; /* a reader without the lock finds complete entries */

static int device_attribute(int which, weft_cu_device device) {
    int value = 0;
    weft_cuda.cuDeviceGetAttribute(&value, which, device);
    return value;
}

/* Returns the ordinal of the GPU whose context is current in the calling thread, or -1 if there is
 * none. */
static int gpu_current(void) {
    int count = 0;
    weft_cu_context context = NULL;
    weft_cu_device current, device;
    if (weft_cuda.cuDeviceGetCount(&count) != 0 || weft_cuda.cuCtxGetCurrent(&context) != 0 ||
        !context || weft_cuda.cuCtxGetDevice(&current) != 0)
        return -1;
    for (int ordinal = 0; ordinal < count; ordinal++)
        if (weft_cuda.cuDeviceGet(&device, ordinal) == 0 && device == current)
            return ordinal;
    return -1;
}

int weft_gpu_choose(int wanted, int pe, int *ordinal) {
    int count = 0, error = weft_cuda_load();
    if (error)
        return error;
    error = weft_cuda_check(weft_cuda.cuDeviceGetCount(&count), "GPUs");
    if (error)
        return error;
    if (wanted >= count)
        return weft_fail_bare(
            -ENODEV, "SHMEMX_DEVICE is %d, and CUDA sees %d GPUs here: set it to a smaller number",
            wanted, count);
    int current = gpu_current();
    *ordinal = wanted >= 0 ? wanted : current >= 0 ? current : pe % count;
    return 0;
}

/* Checks that the GPU can do everything that a window needs; otherwise it is not used. */
static int device_require(weft_cu_device device, const char *name) {
    if (device_attribute(WEFT_CU_DEVICE_MAPS_MEMORY, device) &&
        device_attribute(WEFT_CU_DEVICE_EXPORTS_DESCRIPTORS, device))
        return 0;
    return weft_fail_bare(-ENODEV,
                          "%s cannot map memory of other processes (virtual memory management and "
                          "export to file descriptors)",
                          name);
}

int weft_gpu_describe(struct weft_gpu *gpu, int ordinal) {
    weft_cu_device device;
    int error = weft_cuda.cuDeviceGet(&device, ordinal);
    if (error == 0)
        error = weft_cuda.cuDeviceGetName(gpu->name, sizeof gpu->name, device);
    if (error == 0)
        error = weft_cuda.cuDeviceGetUuid(&gpu->uuid, device);
    if (error == 0)
        error = weft_cuda.cuDeviceTotalMem(&gpu->memory_bytes, device);
    if (error != 0)
        return weft_cuda_check(error, "the GPU of this PE");
    gpu->ordinal = ordinal;
    gpu->device = device;
    gpu->capability = 10 * device_attribute(WEFT_CU_DEVICE_CAPABILITY_MAJOR, device) +
                      device_attribute(WEFT_CU_DEVICE_CAPABILITY_MINOR, device);
    gpu->sms = device_attribute(WEFT_CU_DEVICE_SMS, device);
    gpu->sees_registered_memory =
        device_attribute(WEFT_CU_DEVICE_REGISTERS_HOST_MEMORY, device) &&
        device_attribute(WEFT_CU_DEVICE_REGISTERED_AT_HOST_ADDRESS, device);
    gpu->host_atomics = device_attribute(WEFT_CU_DEVICE_HOST_ATOMICS, device);
    gpu->wide_words = device_attribute(WEFT_CU_DEVICE_STREAM_WORDS_64, device);
    return device_require(device, gpu->name);
}

/* Creates the library's streams: `stream` with the lowest priority, `rescue` with the highest. The
 * GPU's context must be current. */
static int streams_open(struct weft_gpu *gpu) {
    int least = 0, greatest = 0;
    weft_cuda.cuCtxGetStreamPriorityRange(&least, &greatest);
    int error =
        weft_cuda.cuStreamCreateWithPriority(&gpu->stream, WEFT_CU_STREAM_NON_BLOCKING, least);
    if (error == 0)
        error = weft_cuda.cuStreamCreateWithPriority(&gpu->rescue, WEFT_CU_STREAM_NON_BLOCKING,
                                                     greatest);
    return weft_cuda_check(error, "streams of the library");
}

static int granularity_find(struct weft_gpu *gpu) {
    struct weft_cu_memory_properties properties = weft_gpu_memory_properties(gpu);
    return weft_cuda_check(weft_cuda.cuMemGetAllocationGranularity(&gpu->granularity, &properties,
                                                                   WEFT_CU_GRANULARITY_RECOMMENDED),
                           gpu->name);
}

static void gpu_end(struct weft_gpu *gpu) {
    struct weft_gpu_scope scope = weft_gpu_enter(gpu);
    if (gpu->stream)
        weft_cuda.cuStreamDestroy(gpu->stream);
    if (gpu->rescue)
        weft_cuda.cuStreamDestroy(gpu->rescue);
    weft_gpu_leave(scope);
    weft_cuda.cuDevicePrimaryCtxRelease(gpu->device);
    free(gpu);
}

static int gpu_begin(struct weft_gpu *gpu, int ordinal) {
    int error = weft_gpu_describe(gpu, ordinal);
    error = error ? error
                  : weft_cuda_check(weft_cuda.cuDevicePrimaryCtxRetain(&gpu->context, gpu->device),
                                    gpu->name);
    if (error) {
        free(gpu);
        return error;
    }
    struct weft_gpu_scope scope = weft_gpu_enter(gpu);
    if ((error = streams_open(gpu)) == 0)
        error = granularity_find(gpu);
    weft_gpu_leave(scope);
    if (error)
        gpu_end(gpu);
    return error;
}

/* Returns the open GPU with this number, or NULL. Called under the lock. */
static struct weft_gpu *gpu_find(int ordinal) {
    struct weft_gpu *gpu = atomic_load(&open_gpus);
    while (gpu && gpu->ordinal != ordinal)
        gpu = gpu->next;
    return gpu;
}

static int gpu_add(struct weft_gpu **gpu, int ordinal) {
    struct weft_gpu *made = calloc(1, sizeof *made);
    int error =
        made ? gpu_begin(made, ordinal) : weft_fail_bare(-ENOMEM, "no memory for GPU %d", ordinal);
    if (error)
        return error;
    made->next = atomic_load(&open_gpus);
    atomic_store(&open_gpus, made);
    *gpu = made;
    return 0;
}

int weft_gpu_open(struct weft_gpu **gpu, int ordinal) {
    pthread_mutex_lock(&opening);
    struct weft_gpu *found = gpu_find(ordinal);
    int error = found ? 0 : gpu_add(&found, ordinal);
    if (error == 0) {
        found->holders++;
        *gpu = found;
    }
    pthread_mutex_unlock(&opening);
    return error;
}

static void gpu_unlink(struct weft_gpu *gpu) {
    struct weft_gpu *before = atomic_load(&open_gpus);
    if (before == gpu) {
        atomic_store(&open_gpus, gpu->next);
        return;
    }
    while (before->next != gpu)
        before = before->next;
    before->next = gpu->next;
}

void weft_gpu_close(struct weft_gpu *gpu) {
    pthread_mutex_lock(&opening);
    bool last = --gpu->holders == 0;
    if (last)
        gpu_unlink(gpu);
    pthread_mutex_unlock(&opening);
    if (last)
        gpu_end(gpu);
}

bool weft_gpu_is_own_stream(weft_cu_stream stream) {
    const struct weft_gpu *gpu = atomic_load_explicit(&open_gpus, memory_order_acquire);
    while (gpu && gpu->stream != stream)
        gpu = gpu->next;
    return gpu != NULL;
}

struct weft_gpu_scope weft_gpu_enter(const struct weft_gpu *gpu) {
    struct weft_gpu_scope scope = {.pushed = false, .capture_mode = WEFT_CU_CAPTURE_RELAXED};
    weft_cu_context current = NULL;
    weft_cuda.cuCtxGetCurrent(&current);
    if (current != gpu->context)
        scope.pushed = weft_cuda.cuCtxPushCurrent(gpu->context) == 0;
    weft_cuda.cuThreadExchangeStreamCaptureMode(&scope.capture_mode);
    return scope;
}

void weft_gpu_leave(struct weft_gpu_scope scope) {
    weft_cuda.cuThreadExchangeStreamCaptureMode(&scope.capture_mode);
    weft_cu_context own;
    if (scope.pushed)
        weft_cuda.cuCtxPopCurrent(&own);
}

struct weft_cu_memory_properties weft_gpu_memory_properties(const struct weft_gpu *gpu) {
    return (struct weft_cu_memory_properties){
        .type = WEFT_CU_MEMORY_PINNED,
        .handle_types = WEFT_CU_HANDLE_DESCRIPTOR,
        .location = {WEFT_CU_LOCATION_DEVICE, gpu->device},
    };
}

int weft_gpu_synchronize(weft_cu_stream stream) {
    return weft_cuda_check(weft_cuda.cuStreamSynchronize(stream), "cuStreamSynchronize");
}

bool weft_gpu_capturing(weft_cu_stream stream) {
    int status = WEFT_CU_CAPTURE_NONE;
    weft_cuda.cuStreamIsCapturing(stream, &status);
    return status != WEFT_CU_CAPTURE_NONE;
}

int weft_gpu_capture_id(weft_cu_stream stream, uint64_t *id) {
    int status = WEFT_CU_CAPTURE_NONE;
    uint64_t found = 0;
    int error =
        weft_cuda.cuStreamGetCaptureInfo_v3(stream, &status, &found, NULL, NULL, NULL, NULL);
    *id = status == WEFT_CU_CAPTURE_NONE ? 0 : found;
    return weft_cuda_check(error, "cuStreamGetCaptureInfo");
}

enum weft_memory_kind weft_gpu_memory_kind(const void *p) {
    unsigned kind = 0;
    if (weft_host_memory_holds(p))
        return WEFT_MEMORY_HOST;
    if (weft_cuda.cuPointerGetAttribute(&kind, WEFT_CU_POINTER_MEMORY_TYPE, (uintptr_t)p) != 0)
        return WEFT_MEMORY_HOST; /* unknown to CUDA */
    return kind == WEFT_CU_POINTER_TO_DEVICE ? WEFT_MEMORY_DEVICE : WEFT_MEMORY_REGISTERED;
}

/* --- Registered host memory ------------------------------------------------------------------- */

/* The host memory that this process has registered. */
static struct {
    pthread_mutex_t changing;
    struct registration {
        uintptr_t at;
        size_t bytes;
    } * list;
    size_t count;
} registrations = {.changing = PTHREAD_MUTEX_INITIALIZER};

static int registration_note(void *at, size_t bytes) {
    pthread_mutex_lock(&registrations.changing);
    struct registration *longer =
        realloc(registrations.list, (registrations.count + 1) * sizeof *longer);
    if (longer) {
        registrations.list = longer;
        longer[registrations.count++] = (struct registration){(uintptr_t)at, bytes};
    }
    pthread_mutex_unlock(&registrations.changing);
    return longer ? 0 : weft_fail_bare(-ENOMEM, "no memory to record what is registered");
}

static void registration_forget(const void *at) {
    pthread_mutex_lock(&registrations.changing);
    for (size_t i = 0; i < registrations.count; i++)
        if (registrations.list[i].at == (uintptr_t)at)
            registrations.list[i] = registrations.list[--registrations.count];
    pthread_mutex_unlock(&registrations.changing);
}

int weft_gpu_register(void *at, size_t bytes) {
    const struct weft_gpu *gpu = atomic_load(&open_gpus);
    while (gpu && gpu->sees_registered_memory)
        gpu = gpu->next;
    if (gpu)
        return weft_fail_bare(-ENOTSUP, "%s cannot access host memory at the host's addresses",
                              gpu->name);
    int error = weft_cuda_check(
        weft_cuda.cuMemHostRegister(at, bytes, WEFT_CU_HOST_PORTABLE | WEFT_CU_HOST_DEVICE_MAP),
        "symmetric host memory");
    if (error == 0 && (error = registration_note(at, bytes)))
        weft_cuda.cuMemHostUnregister(at);
    return error;
}

void weft_gpu_unregister(void *at) {
    registration_forget(at);
    weft_cuda.cuMemHostUnregister(at);
}

size_t weft_gpu_run(const void *p, size_t bytes) {
    pthread_mutex_lock(&registrations.changing);
    for (size_t i = 0; i < registrations.count; i++) {
        const struct registration *r = &registrations.list[i];
        uintptr_t into = (uintptr_t)p - r->at, before = r->at - (uintptr_t)p;
        size_t run = into < r->bytes ? r->bytes - into : before;
        if (run < bytes) /* if p is far behind r, `before` is huge */
            bytes = run;
    }
    pthread_mutex_unlock(&registrations.changing);
    return bytes;
}

struct weft_gpu_peer weft_gpu_peer_of(const struct weft_gpu *gpu, const struct weft_cu_uuid *uuid) {
    struct weft_gpu_peer peer = {.ordinal = -1};
    if (memcmp(uuid, &gpu->uuid, sizeof *uuid) == 0)
        return (struct weft_gpu_peer){gpu->ordinal, true, true, true, 0};
    int count = 0;
    weft_cuda.cuDeviceGetCount(&count);
    for (int ordinal = 0; ordinal < count; ordinal++) {
        weft_cu_device device;
        struct weft_cu_uuid its;
        if (weft_cuda.cuDeviceGet(&device, ordinal) != 0 ||
            weft_cuda.cuDeviceGetUuid(&its, device) != 0 || memcmp(&its, uuid, sizeof its) != 0)
            continue;
        int access = 0, atomics = 0;
        weft_cuda.cuDeviceCanAccessPeer(&access, gpu->device, device);
        weft_cuda.cuDeviceGetP2PAttribute(&atomics, WEFT_CU_PAIR_ATOMICS, gpu->device, device);
        weft_cuda.cuDeviceGetP2PAttribute(&peer.rank, WEFT_CU_PAIR_RANK, gpu->device, device);
        peer.ordinal = ordinal;
        peer.access = access != 0 && strcmp(weft_env.peer_access, "off") != 0;
        peer.atomics = peer.access && atomics != 0;
    }
    return peer;
}
