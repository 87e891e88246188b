/* SPDX-License-Identifier: BSD-3-Clause */
/* The driver's errors, as far as this one makes them: number, name and text as the real driver's.
 */
#ifndef TESTS_GPU_DRIVER_ERROR_H
#define TESTS_GPU_DRIVER_ERROR_H

/* clang-format off */
#define CUDA_ERRORS(X)                                                                             \
    X(CUDA_SUCCESS, 0, "no error")                                                                 \
    X(CUDA_ERROR_INVALID_VALUE, 1, "invalid argument")                                             \
    X(CUDA_ERROR_OUT_OF_MEMORY, 2, "out of memory")                                                \
    X(CUDA_ERROR_NOT_INITIALIZED, 3, "initialization error")                                       \
    X(CUDA_ERROR_NO_DEVICE, 100, "no CUDA-capable device is detected")                             \
    X(CUDA_ERROR_INVALID_DEVICE, 101, "invalid device ordinal")                                    \
    X(CUDA_ERROR_INVALID_CONTEXT, 201, "invalid device context")                                   \
    X(CUDA_ERROR_OPERATING_SYSTEM, 304, "OS call failed or operation not supported on this OS")    \
    X(CUDA_ERROR_INVALID_HANDLE, 400, "invalid resource handle")                                   \
    X(CUDA_ERROR_ILLEGAL_STATE, 401,                                                               \
      "the operation cannot be performed in the present state")                                    \
    X(CUDA_ERROR_NOT_FOUND, 500, "named symbol not found")                                         \
    X(CUDA_ERROR_NOT_READY, 600, "device not ready")                                               \
    X(CUDA_ERROR_ILLEGAL_ADDRESS, 700, "an illegal memory access was encountered")                 \
    X(CUDA_ERROR_CONTEXT_IS_DESTROYED, 709, "context is destroyed")                                \
    X(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, 712,                                              \
      "part or all of the requested memory range is already mapped")                               \
    X(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, 713,                                                  \
      "pointer does not correspond to a registered memory region")                                 \
    X(CUDA_ERROR_LAUNCH_FAILED, 719, "unspecified launch failure")                                 \
    X(CUDA_ERROR_NOT_PERMITTED, 800, "operation not permitted")                                    \
    X(CUDA_ERROR_NOT_SUPPORTED, 801, "operation not supported")                                    \
    X(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, 900,                                                  \
      "operation not permitted when stream is capturing")                                          \
    X(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, 901,                                                  \
      "operation failed due to a previous error during capture")                                   \
    X(CUDA_ERROR_STREAM_CAPTURE_MERGE, 902,                                                        \
      "operation would result in a merge of separate capture sequences")                           \
    X(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, 903, "capture was not ended in the same stream as it began") \
    X(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, 904, "capturing stream has unjoined work")               \
    X(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, 905,                                                    \
      "dependency created on uncaptured work in another stream")                                   \
    X(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, 906,                                                     \
      "operation would make the legacy stream depend on a capturing blocking stream")              \
    X(CUDA_ERROR_CAPTURED_EVENT, 907,                                                              \
      "operation not permitted on an event last recorded in a capturing stream")                   \
    X(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, 908,                                                 \
      "attempt to terminate a thread-local capture sequence from another thread")
/* clang-format on */

enum {
#define CUDA_ERROR_NUMBER(name, number, text) name = number,
    CUDA_ERRORS(CUDA_ERROR_NUMBER)
#undef CUDA_ERROR_NUMBER
};

#endif
