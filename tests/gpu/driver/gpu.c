/* SPDX-License-Identifier: BSD-3-Clause */
#include "gpu.h"
#include "space.h"
#include "stream.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STACK_MAX = 32, LEAST_PRIORITY = 0, GREATEST_PRIORITY = -5 };

static int in_machine;
static int visible[GPUS_MAX], nvisible; /* GPUs of the machine by ordinal */
static bool initialised, unreachable[GPUS_MAX][GPUS_MAX], torn[GPUS_MAX][GPUS_MAX];
static struct CUctx_st contexts[GPUS_MAX];
size_t gpu_used_bytes[GPUS_MAX];

static _Thread_local struct CUctx_st *stack[STACK_MAX];
static _Thread_local int depth;

/* --- The GPUs --------------------------------------------------------------------------------- */

/* As in CUDA, an invalid or repeated name ends the list. */
static void read_visible(const char *list) {
    char *end;
    for (; nvisible < in_machine; list = end + 1) {
        long number = strtol(list, &end, 10);
        if (end == list || number < 0 || number >= in_machine)
            return;
        for (int i = 0; i < nvisible; i++)
            if (visible[i] == number)
                return;
        visible[nvisible++] = (int)number;
        if (*end != ',')
            return;
    }
}

static void read_pairs(bool pairs[GPUS_MAX][GPUS_MAX], const char *list) {
    int one, other, read;
    for (; list && sscanf(list, "%d-%d%n", &one, &other, &read) == 2; list += *list == ',') {
        if (one >= 0 && other >= 0 && one < GPUS_MAX && other < GPUS_MAX)
            pairs[one][other] = pairs[other][one] = true;
        list += read;
    }
}

static int open_all(void) {
    if (initialised)
        return 0;
    in_machine = (int)call_setting("WEFT_FAKE_GPUS", 2);
    if (in_machine > GPUS_MAX)
        in_machine = GPUS_MAX;
    const char *list = getenv("CUDA_VISIBLE_DEVICES");
    read_visible(list ? list : "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15");
    read_pairs(unreachable, getenv("WEFT_FAKE_NO_PEER"));
    read_pairs(torn, getenv("WEFT_FAKE_NO_ATOMICS"));
    for (int i = 0; i < GPUS_MAX; i++)
        contexts[i].gpu = i;
    initialised = nvisible > 0;
    return initialised ? 0 : CUDA_ERROR_NO_DEVICE;
}

bool gpu_initialised(void) {
    return initialised;
}

int gpu_of(weft_cu_device device) {
    return device >= 0 && device < nvisible ? visible[device] : -1;
}

bool gpu_reaches(int gpu, int owner) {
    return !unreachable[gpu][owner];
}

bool gpu_tears(int gpu, int owner) {
    return torn[gpu][owner];
}

size_t gpu_memory_bytes(void) {
    return (size_t)call_setting("WEFT_FAKE_MEMORY_MB", 4096) << 20;
}

int cuInit(unsigned flags) {
    CALL(NOTHING, flags ? CUDA_ERROR_INVALID_VALUE : open_all());
}

int cuDriverGetVersion(int *version) {
    CALL(NOTHING, (*version = 13000, 0));
}

int cuDeviceGetCount(int *count) {
    CALL(INITIALISED, (*count = nvisible, 0));
}

int cuDeviceGet(weft_cu_device *device, int ordinal) {
    CALL(INITIALISED, gpu_of(ordinal) < 0 ? CUDA_ERROR_INVALID_DEVICE : (*device = ordinal, 0));
}

/* --- Attributes of a GPU ---------------------------------------------------------------------- */

static int print(char *text, int bytes, const char *format, int gpu) {
    if (bytes <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    snprintf(text, (size_t)bytes, format, gpu);
    return 0;
}

int cuDeviceGetName(char *name, int bytes, weft_cu_device device) {
    int gpu = gpu_of(device);
    CALL(INITIALISED,
         gpu < 0 ? CUDA_ERROR_INVALID_DEVICE : print(name, bytes, "Pretended GPU %d", gpu));
}

static int tell_uuid(struct weft_cu_uuid *uuid, int gpu) {
    if (gpu < 0)
        return CUDA_ERROR_INVALID_DEVICE;
    memcpy(uuid->bytes, "\x57pretended GPU \0", sizeof uuid->bytes);
    uuid->bytes[15] = (unsigned char)gpu;
    return 0;
}

int cuDeviceGetUuid(struct weft_cu_uuid *uuid, weft_cu_device device) {
    CALL(INITIALISED, tell_uuid(uuid, gpu_of(device)));
}

int cuDeviceTotalMem(size_t *bytes, weft_cu_device device) {
    CALL(INITIALISED,
         gpu_of(device) < 0 ? CUDA_ERROR_INVALID_DEVICE : (*bytes = gpu_memory_bytes(), 0));
}

/* As for an H200 behind PCI Express: no atomics on host words. */
static int attribute_of(int attribute) {
    switch (attribute) {
    case WEFT_CU_DEVICE_SMS:
        return (int)call_setting("WEFT_FAKE_SMS", GPU_SMS);
    case WEFT_CU_DEVICE_COPY_ENGINES:
        return 3;
    case WEFT_CU_DEVICE_CAPABILITY_MAJOR:
        return 9;
    case WEFT_CU_DEVICE_CAPABILITY_MINOR:
        return 0;
    case WEFT_CU_DEVICE_HOST_ATOMICS:
        return 0;
    case WEFT_CU_DEVICE_REGISTERED_AT_HOST_ADDRESS:
    case WEFT_CU_DEVICE_REGISTERS_HOST_MEMORY:
    case WEFT_CU_DEVICE_MAPS_MEMORY:
    case WEFT_CU_DEVICE_EXPORTS_DESCRIPTORS:
    case WEFT_CU_DEVICE_STREAM_WORDS_64:
        return 1;
    default:
        return -1;
    }
}

static int tell_attribute(int *value, int attribute, int gpu) {
    if (gpu < 0)
        return CUDA_ERROR_INVALID_DEVICE;
    if (attribute_of(attribute) < 0)
        return CUDA_ERROR_INVALID_VALUE;
    *value = attribute_of(attribute);
    return 0;
}

int cuDeviceGetAttribute(int *value, int attribute, weft_cu_device device) {
    CALL(INITIALISED, tell_attribute(value, attribute, gpu_of(device)));
}

static int tell_pair(int *value, int attribute, int gpu, int peer) {
    if (gpu < 0 || peer < 0 || gpu == peer)
        return CUDA_ERROR_INVALID_DEVICE;
    if (attribute < WEFT_CU_PAIR_RANK || attribute > WEFT_CU_PAIR_ATOMICS)
        return CUDA_ERROR_INVALID_VALUE;
    *value = attribute == WEFT_CU_PAIR_RANK ? 0 : gpu_reaches(gpu, peer);
    if (attribute == WEFT_CU_PAIR_ATOMICS)
        *value = *value && !gpu_tears(gpu, peer);
    return 0;
}

int cuDeviceGetP2PAttribute(int *value, int attribute, weft_cu_device from, weft_cu_device to) {
    CALL(INITIALISED, tell_pair(value, attribute, gpu_of(from), gpu_of(to)));
}

int cuDeviceCanAccessPeer(int *can, weft_cu_device device, weft_cu_device peer) {
    int from = gpu_of(device), to = gpu_of(peer);
    CALL(INITIALISED, from < 0 || to < 0 ? CUDA_ERROR_INVALID_DEVICE
                                         : (*can = from != to && gpu_reaches(from, to), 0));
}

/* --- Contexts ----------------------------------------------------------------------------------
 */

struct CUctx_st *context_current(void) {
    return depth ? stack[depth - 1] : NULL;
}

struct CUctx_st *context_of(int gpu) {
    return gpu < GPUS_MAX ? &contexts[gpu] : NULL;
}

static int retain(weft_cu_context *context, int gpu) {
    if (gpu < 0)
        return CUDA_ERROR_INVALID_DEVICE;
    contexts[gpu].retained++;
    *context = &contexts[gpu];
    return 0;
}

int cuDevicePrimaryCtxRetain(weft_cu_context *context, weft_cu_device device) {
    CALL(INITIALISED, retain(context, gpu_of(device)));
}

/* With the last hold the context's streams end, and a failure is forgotten. */
static int release(int gpu) {
    if (gpu < 0)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!contexts[gpu].retained)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (--contexts[gpu].retained == 0) {
        stream_close_all(&contexts[gpu]);
        contexts[gpu].failed = 0;
    }
    return 0;
}

int cuDevicePrimaryCtxRelease(weft_cu_device device) {
    CALL(INITIALISED, release(gpu_of(device)));
}

int cuCtxGetCurrent(weft_cu_context *context) {
    CALL(INITIALISED, (*context = context_current(), 0));
}

static int tell_device(weft_cu_device *device) {
    for (int i = 0; i < nvisible; i++)
        if (visible[i] == context_current()->gpu)
            *device = i;
    return 0;
}

int cuCtxGetDevice(weft_cu_device *device) {
    CALL(CONTEXT, tell_device(device));
}

static int push(weft_cu_context context) {
    if (context < contexts || context >= contexts + GPUS_MAX || depth == STACK_MAX)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!context->retained)
        return CUDA_ERROR_INVALID_CONTEXT;
    stack[depth++] = context;
    return 0;
}

int cuCtxPushCurrent(weft_cu_context context) {
    CALL(INITIALISED, push(context));
}

static int pop(weft_cu_context *context) {
    if (!depth)
        return CUDA_ERROR_INVALID_CONTEXT;
    depth--;
    if (context)
        *context = stack[depth];
    return 0;
}

int cuCtxPopCurrent(weft_cu_context *context) {
    CALL(INITIALISED, pop(context));
}

static int tell_priorities(int *least, int *greatest) {
    if (least)
        *least = LEAST_PRIORITY;
    if (greatest)
        *greatest = GREATEST_PRIORITY;
    return 0;
}

int cuCtxGetStreamPriorityRange(int *least, int *greatest) {
    CALL(CONTEXT, tell_priorities(least, greatest));
}

int cuCtxSynchronize(void) {
    CALL(NO_CAPTURE, stream_drain_all(context_current()));
}

static int tell_memory(size_t *available, size_t *total) {
    size_t used = gpu_used_bytes[context_current()->gpu];
    *total = gpu_memory_bytes();
    *available = *total - used;
    return 0;
}

int cuMemGetInfo(size_t *available, size_t *total) {
    CALL(CONTEXT, tell_memory(available, total));
}
