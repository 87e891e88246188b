/* SPDX-License-Identifier: BSD-3-Clause */
/* CUDA's driver, opened at run time: the library links nothing of CUDA, so one build runs on
 * machines with and without GPUs.
 *
 * This file declares the part of the driver that Weft uses, under the driver's own names. Numbers
 * and layouts are the driver's ABI, which tests/gpu/abi.cu compares with cuda.h where the toolkit
 * is installed. Calls return 0 or the driver's error number. */
#ifndef WEFT_BASE_CUDA_H
#define WEFT_BASE_CUDA_H

#include <stddef.h>
#include <stdint.h>

typedef int weft_cu_device;
typedef uintptr_t weft_cu_address; /* one address space for the host and all GPUs */
typedef struct CUctx_st *weft_cu_context;
typedef struct CUstream_st *weft_cu_stream;
typedef struct CUevent_st *weft_cu_event;
typedef struct CUmod_st *weft_cu_module;
typedef struct CUfunc_st *weft_cu_function;
typedef struct CUgraph_st *weft_cu_graph;
typedef struct CUgraphExec_st *weft_cu_graph_exec;
typedef unsigned long long weft_cu_memory; /* an allocation of physical memory */

enum {
    WEFT_CU_SUCCESS = 0,
    WEFT_CU_INVALID_VALUE = 1,
    WEFT_CU_OUT_OF_MEMORY = 2,
    WEFT_CU_NO_DEVICE = 100,
    WEFT_CU_ALREADY_REGISTERED = 712,
    WEFT_CU_NOT_READY = 600,
    WEFT_CU_NOT_SUPPORTED = 801,
};

/* Attributes of a device, and of a pair of devices. */
enum {
    WEFT_CU_DEVICE_SMS = 16,
    WEFT_CU_DEVICE_COPY_ENGINES = 40,
    WEFT_CU_DEVICE_CAPABILITY_MAJOR = 75,
    WEFT_CU_DEVICE_CAPABILITY_MINOR = 76,
    WEFT_CU_DEVICE_HOST_ATOMICS = 86,
    WEFT_CU_DEVICE_REGISTERED_AT_HOST_ADDRESS = 91,
    WEFT_CU_DEVICE_REGISTERS_HOST_MEMORY = 99,
    WEFT_CU_DEVICE_MAPS_MEMORY = 102,
    WEFT_CU_DEVICE_EXPORTS_DESCRIPTORS = 103,
    WEFT_CU_DEVICE_STREAM_WORDS_64 = 122,
    WEFT_CU_PAIR_RANK = 1,
    WEFT_CU_PAIR_ACCESS = 2,
    WEFT_CU_PAIR_ATOMICS = 3,
};

/* An explicit handle of the default stream; NULL means the same stream. */
#define WEFT_CU_STREAM_LEGACY ((weft_cu_stream)1)

/* Flags and kinds. */
enum {
    WEFT_CU_MEMORY_PINNED = 1,
    WEFT_CU_LOCATION_DEVICE = 1,
    WEFT_CU_HANDLE_DESCRIPTOR = 1,
    WEFT_CU_ACCESS_READ_WRITE = 3,
    WEFT_CU_GRANULARITY_RECOMMENDED = 1,
    WEFT_CU_HOST_PORTABLE = 1,
    WEFT_CU_HOST_DEVICE_MAP = 2,
    WEFT_CU_STREAM_NON_BLOCKING = 1,
    WEFT_CU_EVENT_NO_TIMING = 2,
    WEFT_CU_CAPTURE_GLOBAL = 0,
    WEFT_CU_CAPTURE_RELAXED = 2,
    WEFT_CU_CAPTURE_NONE = 0, /* the stream is not being captured */
    WEFT_CU_WAIT_GEQ = 0,     /* (int32_t)(*word - value) >= 0 */
    WEFT_CU_WAIT_EQ = 1,
    WEFT_CU_WRITE_ORDERED = 0,   /* with a fence before it: after all earlier work of the stream */
    WEFT_CU_WRITE_UNORDERED = 1, /* without a fence: may become visible before earlier writes */
    WEFT_CU_OP_WAIT_32 = 1,
    WEFT_CU_OP_WRITE_32 = 2,
    WEFT_CU_OP_WAIT_64 = 4,
    WEFT_CU_OP_WRITE_64 = 5,
    WEFT_CU_POINTER_MEMORY_TYPE = 2, /* attribute of a pointer, as an unsigned: */
    WEFT_CU_POINTER_TO_HOST = 1,
    WEFT_CU_POINTER_TO_DEVICE = 2,
    WEFT_CU_FUNCTION_SHARED_MAX = 8, /* attribute of a function: most dynamic shared memory */
    WEFT_CU_LAUNCH_CLUSTER = 4,      /* attribute of a launch: the blocks of a cluster */
    WEFT_CU_LAUNCH_EARLY = 6,        /* ...: it may start before the kernel before it has ended */
    WEFT_CU_TENSOR_F16 = 6,
    WEFT_CU_TENSOR_BF16 = 9,
    WEFT_CU_TENSOR_NO_SWIZZLE = 0,
    WEFT_CU_TENSOR_SWIZZLE_128 = 3, /* rows of 128 bytes, of which 8 are swizzled */
    WEFT_CU_TENSOR_L2_256 = 3,      /* loads bring 256 bytes to L2 */
};

struct weft_cu_uuid {
    unsigned char bytes[16];
};

struct weft_cu_location {
    int type, id;
};

struct weft_cu_memory_properties {
    int type, handle_types;
    struct weft_cu_location location;
    void *unused;
    struct {
        unsigned char compression, rdma;
        unsigned short usage;
        unsigned char reserved[4];
    } flags;
};

struct weft_cu_access {
    struct weft_cu_location location;
    int flags;
};

/* An element of a batch of stream memory operations; waits and writes have the same layout. */
union weft_cu_word_op {
    struct {
        int operation;
        weft_cu_address address;
        union {
            uint32_t value;
            uint64_t value64;
        };
        unsigned flags;
        weft_cu_address alias;
    };
    uint64_t pad[6];
};

/* Describes a matrix and boxes of it, for kernels that load and store boxes in bulk; made by
 * cuTensorMapEncodeTiled. */
struct __attribute__((aligned(128))) weft_cu_tensor_map {
    uint64_t opaque[16];
};

struct weft_cu_launch_attribute {
    int id;
    union {
        uint64_t pad[8];
        unsigned cluster[3]; /* blocks */
        int early;
    } value;
};

struct weft_cu_launch_config {
    unsigned blocks[3], threads[3];
    unsigned shared_bytes;
    weft_cu_stream stream;
    struct weft_cu_launch_attribute *attributes;
    unsigned nattributes;
};

/* X(name, exported name, arguments) */
#define WEFT_CUDA_CALLS(X)                                                                        \
    X(cuInit, "cuInit", (unsigned flags))                                                         \
    X(cuDriverGetVersion, "cuDriverGetVersion", (int *version))                                   \
    X(cuGetErrorName, "cuGetErrorName", (int error, const char **name))                           \
    X(cuGetErrorString, "cuGetErrorString", (int error, const char **text))                       \
    X(cuDeviceGetCount, "cuDeviceGetCount", (int *count))                                         \
    X(cuDeviceGet, "cuDeviceGet", (weft_cu_device * device, int ordinal))                         \
    X(cuDeviceGetName, "cuDeviceGetName", (char *name, int bytes, weft_cu_device device))         \
    X(cuDeviceGetUuid, "cuDeviceGetUuid_v2", (struct weft_cu_uuid * uuid, weft_cu_device device)) \
    X(cuDeviceTotalMem, "cuDeviceTotalMem_v2", (size_t * bytes, weft_cu_device device))           \
    X(cuDeviceGetAttribute, "cuDeviceGetAttribute",                                               \
      (int *value, int attribute, weft_cu_device device))                                         \
    X(cuDeviceCanAccessPeer, "cuDeviceCanAccessPeer",                                             \
      (int *can, weft_cu_device device, weft_cu_device peer))                                     \
    X(cuDeviceGetP2PAttribute, "cuDeviceGetP2PAttribute",                                         \
      (int *value, int attribute, weft_cu_device from, weft_cu_device to))                        \
    X(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain",                                       \
      (weft_cu_context * context, weft_cu_device device))                                         \
    X(cuDevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2", (weft_cu_device device))         \
    X(cuCtxGetCurrent, "cuCtxGetCurrent", (weft_cu_context * context))                            \
    X(cuCtxGetDevice, "cuCtxGetDevice", (weft_cu_device * device))                                \
    X(cuCtxPushCurrent, "cuCtxPushCurrent_v2", (weft_cu_context context))                         \
    X(cuCtxPopCurrent, "cuCtxPopCurrent_v2", (weft_cu_context * context))                         \
    X(cuCtxGetStreamPriorityRange, "cuCtxGetStreamPriorityRange", (int *least, int *greatest))    \
    X(cuCtxSynchronize, "cuCtxSynchronize", (void))                                               \
    X(cuMemGetInfo, "cuMemGetInfo_v2", (size_t * available, size_t * total))                      \
    X(cuMemGetAllocationGranularity, "cuMemGetAllocationGranularity",                             \
      (size_t * bytes, const struct weft_cu_memory_properties *properties, int which))            \
    X(cuMemAddressReserve, "cuMemAddressReserve",                                                 \
      (weft_cu_address * base, size_t bytes, size_t alignment, weft_cu_address hint,              \
       uint64_t flags))                                                                           \
    X(cuMemAddressFree, "cuMemAddressFree", (weft_cu_address base, size_t bytes))                 \
    X(cuMemCreate, "cuMemCreate",                                                                 \
      (weft_cu_memory * memory, size_t bytes, const struct weft_cu_memory_properties *properties, \
       uint64_t flags))                                                                           \
    X(cuMemRelease, "cuMemRelease", (weft_cu_memory memory))                                      \
    X(cuMemMap, "cuMemMap",                                                                       \
      (weft_cu_address at, size_t bytes, size_t offset, weft_cu_memory memory, uint64_t flags))   \
    X(cuMemUnmap, "cuMemUnmap", (weft_cu_address at, size_t bytes))                               \
    X(cuMemSetAccess, "cuMemSetAccess",                                                           \
      (weft_cu_address at, size_t bytes, const struct weft_cu_access *access, size_t count))      \
    X(cuMemExportToShareableHandle, "cuMemExportToShareableHandle",                               \
      (void *handle, weft_cu_memory memory, int type, uint64_t flags))                            \
    X(cuMemImportFromShareableHandle, "cuMemImportFromShareableHandle",                           \
      (weft_cu_memory * memory, void *handle, int type))                                          \
    X(cuMemHostRegister, "cuMemHostRegister_v2", (void *at, size_t bytes, unsigned flags))        \
    X(cuMemHostUnregister, "cuMemHostUnregister", (void *at))                                     \
    X(cuMemHostGetDevicePointer, "cuMemHostGetDevicePointer_v2",                                  \
      (weft_cu_address * address, void *at, unsigned flags))                                      \
    X(cuPointerGetAttribute, "cuPointerGetAttribute",                                             \
      (void *value, int attribute, weft_cu_address address))                                      \
    X(cuMemcpyAsync, "cuMemcpyAsync",                                                             \
      (weft_cu_address to, weft_cu_address from, size_t bytes, weft_cu_stream stream))            \
    X(cuMemsetD8Async, "cuMemsetD8Async",                                                         \
      (weft_cu_address at, unsigned char value, size_t bytes, weft_cu_stream stream))             \
    X(cuMemsetD2D8Async, "cuMemsetD2D8Async",                                                     \
      (weft_cu_address at, size_t step, unsigned char value, size_t bytes, size_t rows,           \
       weft_cu_stream stream))                                                                    \
    X(cuStreamCreateWithPriority, "cuStreamCreateWithPriority",                                   \
      (weft_cu_stream * stream, unsigned flags, int priority))                                    \
    X(cuStreamDestroy, "cuStreamDestroy_v2", (weft_cu_stream stream))                             \
    X(cuStreamSynchronize, "cuStreamSynchronize", (weft_cu_stream stream))                        \
    X(cuStreamQuery, "cuStreamQuery", (weft_cu_stream stream))                                    \
    X(cuStreamWaitEvent, "cuStreamWaitEvent",                                                     \
      (weft_cu_stream stream, weft_cu_event event, unsigned flags))                               \
    X(cuStreamGetId, "cuStreamGetId", (weft_cu_stream stream, uint64_t * id))                     \
    X(cuStreamIsCapturing, "cuStreamIsCapturing", (weft_cu_stream stream, int *status))           \
    X(cuStreamGetCaptureInfo_v3, "cuStreamGetCaptureInfo_v3",                                     \
      (weft_cu_stream stream, int *status, uint64_t *id, weft_cu_graph *graph, const void *nodes, \
       const void *edges, size_t *count))                                                         \
    X(cuThreadExchangeStreamCaptureMode, "cuThreadExchangeStreamCaptureMode", (int *mode))        \
    X(cuStreamWriteValue32, "cuStreamWriteValue32_v2",                                            \
      (weft_cu_stream stream, weft_cu_address word, uint32_t value, unsigned flags))              \
    X(cuStreamWaitValue32, "cuStreamWaitValue32_v2",                                              \
      (weft_cu_stream stream, weft_cu_address word, uint32_t value, unsigned flags))              \
    X(cuStreamBatchMemOp, "cuStreamBatchMemOp_v2",                                                \
      (weft_cu_stream stream, unsigned count, union weft_cu_word_op *ops, unsigned flags))        \
    X(cuEventCreate, "cuEventCreate", (weft_cu_event * event, unsigned flags))                    \
    X(cuEventRecord, "cuEventRecord", (weft_cu_event event, weft_cu_stream stream))               \
    X(cuEventQuery, "cuEventQuery", (weft_cu_event event))                                        \
    X(cuEventSynchronize, "cuEventSynchronize", (weft_cu_event event))                            \
    X(cuEventElapsedTime, "cuEventElapsedTime",                                                   \
      (float *milliseconds, weft_cu_event begin, weft_cu_event end))                              \
    X(cuEventDestroy, "cuEventDestroy_v2", (weft_cu_event event))                                 \
    X(cuLaunchHostFunc, "cuLaunchHostFunc",                                                       \
      (weft_cu_stream stream, void (*function)(void *), void *argument))                          \
    X(cuModuleLoadData, "cuModuleLoadData", (weft_cu_module * module, const void *image))         \
    X(cuModuleUnload, "cuModuleUnload", (weft_cu_module module))                                  \
    X(cuModuleGetFunction, "cuModuleGetFunction",                                                 \
      (weft_cu_function * function, weft_cu_module module, const char *name))                     \
    X(cuFuncLoad, "cuFuncLoad", (weft_cu_function function))                                      \
    X(cuLaunchKernel, "cuLaunchKernel",                                                           \
      (weft_cu_function function, unsigned grid_x, unsigned grid_y, unsigned grid_z,              \
       unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,               \
       weft_cu_stream stream, void **arguments, void **extra))                                    \
    X(cuLaunchKernelEx, "cuLaunchKernelEx",                                                       \
      (const struct weft_cu_launch_config *config, weft_cu_function function, void **arguments,   \
       void **extra))                                                                             \
    X(cuFuncSetAttribute, "cuFuncSetAttribute",                                                   \
      (weft_cu_function function, int attribute, int value))                                      \
    X(cuTensorMapEncodeTiled, "cuTensorMapEncodeTiled",                                           \
      (struct weft_cu_tensor_map * map, int type, unsigned rank, void *at, const uint64_t *sizes, \
       const uint64_t *steps, const unsigned *box, const unsigned *strides, int interleave,       \
       int swizzle, int l2, int fill))                                                            \
    X(cuStreamBeginCapture, "cuStreamBeginCapture_v2", (weft_cu_stream stream, int mode))         \
    X(cuStreamEndCapture, "cuStreamEndCapture", (weft_cu_stream stream, weft_cu_graph * graph))   \
    X(cuGraphInstantiateWithFlags, "cuGraphInstantiateWithFlags",                                 \
      (weft_cu_graph_exec * exec, weft_cu_graph graph, uint64_t flags))                           \
    X(cuGraphLaunch, "cuGraphLaunch", (weft_cu_graph_exec exec, weft_cu_stream stream))           \
    X(cuGraphExecDestroy, "cuGraphExecDestroy", (weft_cu_graph_exec exec))                        \
    X(cuGraphDestroy, "cuGraphDestroy", (weft_cu_graph graph))

struct weft_cuda {
#define WEFT_CUDA_FIELD(name, exported, arguments) int(*name) arguments;
    WEFT_CUDA_CALLS(WEFT_CUDA_FIELD)
#undef WEFT_CUDA_FIELD
};

/* The driver's functions; valid after weft_cuda_load has returned 0. */
extern struct weft_cuda weft_cuda;

/* Opens and initialises the driver, once per process. Returns 0; -ENODEV if there is no driver or
 * no GPU, -ENOSYS if the driver is too old, -EIO if it does not start. Each error sets weft_fail's
 * text. Safe to call from any thread. */
int weft_cuda_load(void);

/* Returns the negative errno that fits an error of the driver, with the text "CALL: WHAT: the
 * driver's description", or 0 for 0. */
int weft_cuda_check(int error, const char *what);

#endif
