/* SPDX-License-Identifier: BSD-3-Clause */
/* CUDA's runtime for programs that are compiled for the host: the part that examples/cuda and
 * examples/minilm call, over the pretended driver. mk/gpu.mk turns kernel<<<...>>>(...) into
 * runtime_launch(...), and adds a KERNEL(name) for each __global__ function. */
#ifndef TESTS_GPU_RUNTIME_H
#define TESTS_GPU_RUNTIME_H

#define WEFT_KERNEL_THREADS
#include "device.h"

#include "kernel.h"

#include "base/cuda.h"
#include <cmath>
#include <cstring>

extern "C" {
#define DECLARE(name, exported, arguments) int name arguments __asm__(exported);
WEFT_CUDA_CALLS(DECLARE)
#undef DECLARE
}

#define __grid_constant__
struct float2 {
    float x, y;
};

static inline float rsqrtf(float x) {
    return 1 / sqrtf(x);
}
static inline float __shfl_xor_sync(unsigned, float mine, int mask) {
    uint32_t bits, lanes;
    memcpy(&bits, &mine, sizeof bits);
    bits = (uint32_t)kernel_warp_meet(bits, &lanes)[(kernel_lane() ^ (unsigned)mask) % warpSize];
    memcpy(&mine, &bits, sizeof mine);
    return mine;
}

typedef int cudaError_t;
enum { cudaSuccess = 0 };
enum cudaMemcpyKind { cudaMemcpyHostToDevice = 1, cudaMemcpyDeviceToHost = 2 };

static int runtime_error;
static weft_cu_device runtime_device;
static weft_cu_module runtime_module;

/* The first error stays. */
static inline cudaError_t runtime_keep(int error) {
    runtime_error = runtime_error ? runtime_error : error;
    return error;
}
static inline cudaError_t cudaGetLastError() {
    return runtime_error;
}
static inline const char *cudaGetErrorString(cudaError_t error) {
    const char *text = NULL;
    cuGetErrorString(error, &text);
    return text ? text : "no error of CUDA's";
}

static inline cudaError_t cudaSetDevice(int device) {
    weft_cu_context context;
    int error = cuDeviceGet(&runtime_device, device);
    error = error ? error : cuDevicePrimaryCtxRetain(&context, runtime_device);
    error = error ? error : cuCtxPushCurrent(context);
    return runtime_keep(error ? error : cuModuleLoadData(&runtime_module, ""));
}

/* Kept until the end. */
template <class T> static inline cudaError_t cudaMalloc(T **p, size_t bytes) {
    struct weft_cu_memory_properties properties = {};
    properties.type = WEFT_CU_MEMORY_PINNED;
    properties.location = {WEFT_CU_LOCATION_DEVICE, runtime_device};
    struct weft_cu_access access = {properties.location, WEFT_CU_ACCESS_READ_WRITE};
    size_t granule = 1;
    weft_cu_memory memory;
    weft_cu_address at = 0;
    int error =
        cuMemGetAllocationGranularity(&granule, &properties, WEFT_CU_GRANULARITY_RECOMMENDED);
    bytes = (bytes + granule - 1) / granule * granule;
    error = error ? error : cuMemCreate(&memory, bytes, &properties, 0);
    error = error ? error : cuMemAddressReserve(&at, bytes, 0, 0, 0);
    error = error ? error : cuMemMap(at, bytes, 0, memory, 0);
    *p = (T *)at;
    return runtime_keep(error ? error : cuMemSetAccess(at, bytes, &access, 1));
}
static inline cudaError_t cudaFree(void *) {
    return 0;
}

static inline cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind) {
    int error = cuMemcpyAsync((weft_cu_address)to, (weft_cu_address)from, bytes, NULL);
    return runtime_keep(error ? error : cuStreamSynchronize(NULL));
}

static inline cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind,
                                          void *stream) {
    return runtime_keep(
        cuMemcpyAsync((weft_cu_address)to, (weft_cu_address)from, bytes, (weft_cu_stream)stream));
}

static inline cudaError_t cudaGetDeviceCount(int *count) {
    int error = cuInit(0);
    return error ? error : cuDeviceGetCount(count);
}

/* --- Streams, events and graphs --------------------------------------------------------------- */

typedef weft_cu_stream cudaStream_t;
typedef weft_cu_event cudaEvent_t;
typedef weft_cu_graph cudaGraph_t;
typedef weft_cu_graph_exec cudaGraphExec_t;
enum { cudaStreamCaptureModeRelaxed = 2 };

static inline cudaError_t cudaStreamCreate(cudaStream_t *stream) {
    return runtime_keep(cuStreamCreateWithPriority(stream, 0, 0));
}
static inline cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
    return runtime_keep(cuStreamSynchronize(stream));
}
static inline cudaError_t cudaStreamBeginCapture(cudaStream_t stream, int mode) {
    return runtime_keep(cuStreamBeginCapture(stream, mode));
}
static inline cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph) {
    return runtime_keep(cuStreamEndCapture(stream, graph));
}
static inline cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph,
                                               unsigned flags) {
    return runtime_keep(cuGraphInstantiateWithFlags(exec, graph, flags));
}
static inline cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
    return runtime_keep(cuGraphLaunch(exec, stream));
}
static inline cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
    return runtime_keep(cuGraphExecDestroy(exec));
}
static inline cudaError_t cudaEventCreate(cudaEvent_t *event) {
    return runtime_keep(cuEventCreate(event, 0));
}
static inline cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    return runtime_keep(cuEventRecord(event, stream));
}
static inline cudaError_t cudaEventSynchronize(cudaEvent_t event) {
    return runtime_keep(cuEventSynchronize(event));
}
static inline cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t first, cudaEvent_t last) {
    return runtime_keep(cuEventElapsedTime(ms, first, last));
}

/* --- Launches --------------------------------------------------------------------------------- */

template <class... P, class... A>
static void runtime_launch_on(cudaStream_t stream, const char *name, void (*)(P...),
                              unsigned blocks, unsigned threads, A... given) {
    std::tuple<P...> arguments(given...);
    weft_cu_function function;
    int error = cuModuleGetFunction(&function, runtime_module, name);
    std::apply(
        [&](auto &...each) {
            void *pointers[] = {(void *)&each...};
            error = error ? error
                          : cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, 0, stream,
                                           pointers, NULL);
        },
        arguments);
    runtime_keep(error);
}

/* kernel<<<blocks, threads>>>(...) on the default stream. */
template <class... P, class... A>
static std::enable_if_t<sizeof...(A) == sizeof...(P)> runtime_launch(const char *name,
                                                                     void (*kernel)(P...),
                                                                     unsigned blocks,
                                                                     unsigned threads, A... given) {
    runtime_launch_on(NULL, name, kernel, blocks, threads, given...);
}

/* kernel<<<blocks, threads, 0, stream>>>(...). */
template <class... P, class... A>
static std::enable_if_t<sizeof...(A) == sizeof...(P)> runtime_launch(
    const char *name, void (*kernel)(P...), unsigned blocks, unsigned threads, int,
    cudaStream_t stream, A... given) {
    runtime_launch_on(stream, name, kernel, blocks, threads, given...);
}

#endif
