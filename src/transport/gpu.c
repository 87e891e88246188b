/* SPDX-License-Identifier: BSD-3-Clause */
/* Opening and asking the GPU. */
#include "transport/gpu.h"
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "base/env.h"
#include "base/log.h"
#include "base/private.h"

struct weft_gpu weft_gpu;

static int device_attribute(int which, weft_cu_device device) {
    int value = 0;
    weft_cuda.cuDeviceGetAttribute(&value, which, device);
    return value;
}

/* The ordinal of the GPU that the calling thread uses already; -1 when it uses none. */
static int ordinal_current(int count) {
    weft_cu_context context = NULL;
    weft_cu_device current, device;
    if (weft_cuda.cuCtxGetCurrent(&context) != 0 || !context ||
        weft_cuda.cuCtxGetDevice(&current) != 0)
        return -1;
    for (int ordinal = 0; ordinal < count; ordinal++)
        if (weft_cuda.cuDeviceGet(&device, ordinal) == 0 && device == current)
            return ordinal;
    return -1;
}

static int ordinal_choose(int wanted, int pe, int *ordinal) {
    int count = 0;
    int error = weft_cuda_check(weft_cuda.cuDeviceGetCount(&count), "cuDeviceGetCount", "GPUs");
    if (error)
        return error;
    if (wanted >= count)
        return weft_fail(-ENODEV, "SHMEMX_DEVICE is %d, and CUDA sees %d GPUs here: set it below",
                         wanted, count);
    int current = ordinal_current(count);
    *ordinal = wanted >= 0 ? wanted : current >= 0 ? current : pe % count;
    return 0;
}

/* What a window needs; without it there is no GPU for us. */
static int device_require(weft_cu_device device, const char *name) {
    if (device_attribute(WEFT_CU_DEVICE_MAPS_MEMORY, device) &&
        device_attribute(WEFT_CU_DEVICE_EXPORTS_DESCRIPTORS, device))
        return 0;
    return weft_fail(-ENODEV,
                     "%s cannot map memory of other processes (virtual memory management and "
                     "export to file descriptors)",
                     name);
}

static int device_describe(int ordinal) {
    weft_cu_device device;
    int error = weft_cuda.cuDeviceGet(&device, ordinal);
    if (error == 0)
        error = weft_cuda.cuDeviceGetName(weft_gpu.name, sizeof weft_gpu.name, device);
    if (error == 0)
        error = weft_cuda.cuDeviceGetUuid(&weft_gpu.uuid, device);
    if (error == 0)
        error = weft_cuda.cuDeviceTotalMem(&weft_gpu.memory_bytes, device);
    if (error != 0)
        return weft_cuda_check(error, "cuDeviceGet", "the GPU of this PE");
    weft_gpu.ordinal = ordinal;
    weft_gpu.device = device;
    weft_gpu.capability = 10 * device_attribute(WEFT_CU_DEVICE_CAPABILITY_MAJOR, device) +
                          device_attribute(WEFT_CU_DEVICE_CAPABILITY_MINOR, device);
    weft_gpu.sms = device_attribute(WEFT_CU_DEVICE_SMS, device);
    weft_gpu.sees_registered_memory =
        device_attribute(WEFT_CU_DEVICE_REGISTERS_HOST_MEMORY, device) &&
        device_attribute(WEFT_CU_DEVICE_REGISTERED_AT_HOST_ADDRESS, device);
    weft_gpu.host_atomics = device_attribute(WEFT_CU_DEVICE_HOST_ATOMICS, device);
    return device_require(device, weft_gpu.name);
}

/* The context is current. */
static int streams_open(void) {
    int least = 0, greatest = 0;
    weft_cuda.cuCtxGetStreamPriorityRange(&least, &greatest);
    int error =
        weft_cuda.cuStreamCreateWithPriority(&weft_gpu.stream, WEFT_CU_STREAM_NON_BLOCKING, least);
    if (error == 0)
        error = weft_cuda.cuStreamCreateWithPriority(&weft_gpu.rescue, WEFT_CU_STREAM_NON_BLOCKING,
                                                     greatest);
    return weft_cuda_check(error, "cuStreamCreateWithPriority", "streams of the library");
}

static int granularity_find(void) {
    struct weft_cu_memory_properties properties = weft_gpu_memory_properties();
    return weft_cuda_check(weft_cuda.cuMemGetAllocationGranularity(
                               &weft_gpu.granularity, &properties, WEFT_CU_GRANULARITY_RECOMMENDED),
                           "cuMemGetAllocationGranularity", weft_gpu.name);
}

int weft_gpu_inspect(int wanted, int pe) {
    int ordinal = 0, error = weft_cuda_load();
    if (weft_gpu.open || error)
        return error;
    error = ordinal_choose(wanted, pe, &ordinal);
    return error ? error : device_describe(ordinal);
}

int weft_gpu_open(int wanted, int pe) {
    int error = weft_gpu_inspect(wanted, pe);
    if (weft_gpu.open || error)
        return error;
    error = weft_cuda_check(weft_cuda.cuDevicePrimaryCtxRetain(&weft_gpu.context, weft_gpu.device),
                            "cuDevicePrimaryCtxRetain", weft_gpu.name);
    if (error)
        return error;
    weft_gpu.open = true;
    struct weft_gpu_scope scope = weft_gpu_enter();
    if ((error = streams_open()) == 0)
        error = granularity_find();
    weft_gpu_leave(scope);
    if (error)
        weft_gpu_close();
    return error;
}

void weft_gpu_close(void) {
    if (!weft_gpu.open)
        return;
    struct weft_gpu_scope scope = weft_gpu_enter();
    if (weft_gpu.stream)
        weft_cuda.cuStreamDestroy(weft_gpu.stream);
    if (weft_gpu.rescue)
        weft_cuda.cuStreamDestroy(weft_gpu.rescue);
    weft_gpu_leave(scope);
    weft_cuda.cuDevicePrimaryCtxRelease(weft_gpu.device);
    weft_gpu = (struct weft_gpu){.open = false};
}

struct weft_gpu_scope weft_gpu_enter_context(weft_cu_context context) {
    struct weft_gpu_scope scope = {.pushed = false, .capture_mode = WEFT_CU_CAPTURE_RELAXED};
    weft_cu_context current = NULL;
    weft_cuda.cuCtxGetCurrent(&current);
    if (current != context)
        scope.pushed = weft_cuda.cuCtxPushCurrent(context) == 0;
    weft_cuda.cuThreadExchangeStreamCaptureMode(&scope.capture_mode);
    return scope;
}

struct weft_gpu_scope weft_gpu_enter(void) {
    return weft_gpu_enter_context(weft_gpu.context);
}

void weft_gpu_leave(struct weft_gpu_scope scope) {
    weft_cuda.cuThreadExchangeStreamCaptureMode(&scope.capture_mode);
    weft_cu_context own;
    if (scope.pushed)
        weft_cuda.cuCtxPopCurrent(&own);
}

struct weft_cu_memory_properties weft_gpu_memory_properties(void) {
    return (struct weft_cu_memory_properties){
        .type = WEFT_CU_MEMORY_PINNED,
        .handle_types = WEFT_CU_HANDLE_DESCRIPTOR,
        .location = {WEFT_CU_LOCATION_DEVICE, weft_gpu.device},
    };
}

int weft_gpu_synchronize(weft_cu_stream stream, const char *call) {
    return weft_cuda_check(weft_cuda.cuStreamSynchronize(stream), call, "cuStreamSynchronize");
}

bool weft_gpu_capturing(weft_cu_stream stream) {
    int status = WEFT_CU_CAPTURE_NONE;
    weft_cuda.cuStreamIsCapturing(stream, &status);
    return status != WEFT_CU_CAPTURE_NONE;
}

enum weft_memory_kind weft_gpu_memory_kind(const void *p) {
    unsigned kind = 0;
    if (weft_private_holds(p))
        return WEFT_MEMORY_HOST;
    if (weft_cuda.cuPointerGetAttribute(&kind, WEFT_CU_POINTER_MEMORY_TYPE, (uintptr_t)p) != 0)
        return WEFT_MEMORY_HOST; /* CUDA does not know it */
    return kind == WEFT_CU_POINTER_TO_DEVICE ? WEFT_MEMORY_DEVICE : WEFT_MEMORY_REGISTERED;
}

/* --- Host memory ------------------------------------------------------------------------------ */

/* What this process has registered. */
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
    return longer ? 0 : weft_fail(-ENOMEM, "no memory to note what is registered");
}

static void registration_forget(const void *at) {
    pthread_mutex_lock(&registrations.changing);
    for (size_t i = 0; i < registrations.count; i++)
        if (registrations.list[i].at == (uintptr_t)at)
            registrations.list[i] = registrations.list[--registrations.count];
    pthread_mutex_unlock(&registrations.changing);
}

int weft_gpu_register(void *at, size_t bytes) {
    if (!weft_gpu.sees_registered_memory)
        return weft_fail(-ENOTSUP, "%s does not see host memory at the host's addresses",
                         weft_gpu.name);
    int error = weft_cuda_check(
        weft_cuda.cuMemHostRegister(at, bytes, WEFT_CU_HOST_PORTABLE | WEFT_CU_HOST_DEVICE_MAP),
        "cuMemHostRegister", "symmetric memory of the host");
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
        if (run < bytes) /* far behind it, `before` is huge */
            bytes = run;
    }
    pthread_mutex_unlock(&registrations.changing);
    return bytes;
}

struct weft_gpu_peer weft_gpu_peer_of(const struct weft_cu_uuid *uuid) {
    struct weft_gpu_peer peer = {.ordinal = -1};
    if (memcmp(uuid, &weft_gpu.uuid, sizeof *uuid) == 0)
        return (struct weft_gpu_peer){weft_gpu.ordinal, true, true, true, 0};
    int count = 0;
    weft_cuda.cuDeviceGetCount(&count);
    for (int ordinal = 0; ordinal < count; ordinal++) {
        weft_cu_device device;
        struct weft_cu_uuid its;
        if (weft_cuda.cuDeviceGet(&device, ordinal) != 0 ||
            weft_cuda.cuDeviceGetUuid(&its, device) != 0 || memcmp(&its, uuid, sizeof its) != 0)
            continue;
        int access = 0, atomics = 0;
        weft_cuda.cuDeviceCanAccessPeer(&access, weft_gpu.device, device);
        weft_cuda.cuDeviceGetP2PAttribute(&atomics, WEFT_CU_PAIR_ATOMICS, weft_gpu.device, device);
        weft_cuda.cuDeviceGetP2PAttribute(&peer.rank, WEFT_CU_PAIR_RANK, weft_gpu.device, device);
        peer.ordinal = ordinal;
        peer.access = access != 0 && strcmp(weft_env.peer_access, "off") != 0;
        peer.atomics = peer.access && atomics != 0;
    }
    return peer;
}
