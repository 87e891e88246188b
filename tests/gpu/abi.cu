/* SPDX-License-Identifier: BSD-3-Clause */
/* Compares the binary interfaces of the driver and of cuBLASLt, as src/base/cuda.h and
 * src/fused/cublaslt.h declare them, with the toolkit's headers: that this file compiles is the
 * test (abi.t). */
#include <cublasLt.h>
#include <cuda.h>
#include <stddef.h>
#include <string_view>
#include <type_traits>
#include "base/cuda.h"
#include "fused/cublaslt.h"

/* --- Functions: as many arguments, each passed alike, under the exported name -------------------
 */

template <class Ours, class Theirs>
constexpr bool passed_alike =
    sizeof(Ours) == sizeof(Theirs) &&
    std::is_pointer_v<Ours> == std::is_pointer_v<Theirs> &&std::is_floating_point_v<Ours> ==
        std::is_floating_point_v<Theirs>;

template <class Ours, class Theirs> struct alike;
template <class... Ours, class Result, class... Theirs>
struct alike<int (*)(Ours...), Result (*)(Theirs...)> {
    static constexpr bool value() {
        if constexpr (sizeof...(Ours) == sizeof...(Theirs))
            return (passed_alike<Ours, Theirs> && ...);
        return false;
    }
};

/* Macros in cuda.h map each name to a version of the function. For one function Weft uses the older
 * version, which has the same arguments. */
constexpr bool is_name_of(std::string_view name, std::string_view exported) {
    return CUDA_VERSION < 13000 || name == exported || exported == "cuEventElapsedTime";
}
#define TEXT(name) #name
#define COMPARE(name, exported, arguments)                                                 \
    static_assert(alike<decltype(weft_cuda::name), decltype(&::name)>::value(), exported); \
    static_assert(is_name_of(TEXT(name), exported), exported);
WEFT_CUDA_CALLS(COMPARE)

/* --- Numbers ------------------------------------------------------------------------------------
 */

#define SAME(ours, theirs) static_assert((int)ours == (int)theirs, #ours)
SAME(WEFT_CU_SUCCESS, CUDA_SUCCESS);
SAME(WEFT_CU_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY);
SAME(WEFT_CU_NO_DEVICE, CUDA_ERROR_NO_DEVICE);
SAME(WEFT_CU_ALREADY_REGISTERED, CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
SAME(WEFT_CU_NOT_READY, CUDA_ERROR_NOT_READY);

SAME(WEFT_CU_DEVICE_SMS, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
SAME(WEFT_CU_DEVICE_COPY_ENGINES, CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT);
SAME(WEFT_CU_DEVICE_CAPABILITY_MAJOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
SAME(WEFT_CU_DEVICE_CAPABILITY_MINOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
SAME(WEFT_CU_DEVICE_HOST_ATOMICS, CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED);
SAME(WEFT_CU_DEVICE_REGISTERED_AT_HOST_ADDRESS,
     CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM);
SAME(WEFT_CU_DEVICE_REGISTERS_HOST_MEMORY, CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED);
SAME(WEFT_CU_DEVICE_MAPS_MEMORY, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
SAME(WEFT_CU_DEVICE_EXPORTS_DESCRIPTORS,
     CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED);
SAME(WEFT_CU_DEVICE_STREAM_WORDS_64, CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS);
SAME(WEFT_CU_PAIR_RANK, CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK);
SAME(WEFT_CU_PAIR_ACCESS, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED);
SAME(WEFT_CU_PAIR_ATOMICS, CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED);

SAME(WEFT_CU_MEMORY_PINNED, CU_MEM_ALLOCATION_TYPE_PINNED);
SAME(WEFT_CU_LOCATION_DEVICE, CU_MEM_LOCATION_TYPE_DEVICE);
SAME(WEFT_CU_HANDLE_DESCRIPTOR, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
SAME(WEFT_CU_ACCESS_READ_WRITE, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
SAME(WEFT_CU_GRANULARITY_RECOMMENDED, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
SAME(WEFT_CU_HOST_PORTABLE, CU_MEMHOSTREGISTER_PORTABLE);
SAME(WEFT_CU_HOST_DEVICE_MAP, CU_MEMHOSTREGISTER_DEVICEMAP);
SAME(WEFT_CU_STREAM_NON_BLOCKING, CU_STREAM_NON_BLOCKING);
SAME(WEFT_CU_EVENT_NO_TIMING, CU_EVENT_DISABLE_TIMING);
SAME(WEFT_CU_CAPTURE_GLOBAL, CU_STREAM_CAPTURE_MODE_GLOBAL);
SAME(WEFT_CU_CAPTURE_RELAXED, CU_STREAM_CAPTURE_MODE_RELAXED);
SAME(WEFT_CU_CAPTURE_NONE, CU_STREAM_CAPTURE_STATUS_NONE);
SAME(WEFT_CU_WAIT_GEQ, CU_STREAM_WAIT_VALUE_GEQ);
SAME(WEFT_CU_WAIT_EQ, CU_STREAM_WAIT_VALUE_EQ);
SAME(WEFT_CU_WRITE_ORDERED, CU_STREAM_WRITE_VALUE_DEFAULT);
SAME(WEFT_CU_WRITE_UNORDERED, CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER);
SAME(WEFT_CU_OP_WAIT_32, CU_STREAM_MEM_OP_WAIT_VALUE_32);
SAME(WEFT_CU_OP_WRITE_32, CU_STREAM_MEM_OP_WRITE_VALUE_32);
SAME(WEFT_CU_OP_WAIT_64, CU_STREAM_MEM_OP_WAIT_VALUE_64);
SAME(WEFT_CU_OP_WRITE_64, CU_STREAM_MEM_OP_WRITE_VALUE_64);
SAME(WEFT_CU_POINTER_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_MEMORY_TYPE);
SAME(WEFT_CU_POINTER_TO_HOST, CU_MEMORYTYPE_HOST);
SAME(WEFT_CU_POINTER_TO_DEVICE, CU_MEMORYTYPE_DEVICE);
SAME(WEFT_CU_FUNCTION_SHARED_MAX, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
SAME(WEFT_CU_LAUNCH_CLUSTER, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
SAME(WEFT_CU_TENSOR_F16, CU_TENSOR_MAP_DATA_TYPE_FLOAT16);
SAME(WEFT_CU_TENSOR_BF16, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16);
SAME(WEFT_CU_TENSOR_NO_SWIZZLE, CU_TENSOR_MAP_SWIZZLE_NONE);
SAME(WEFT_CU_TENSOR_SWIZZLE_128, CU_TENSOR_MAP_SWIZZLE_128B);
SAME(WEFT_CU_TENSOR_L2_256, CU_TENSOR_MAP_L2_PROMOTION_L2_256B);
SAME(0, CU_TENSOR_MAP_INTERLEAVE_NONE);
SAME(0, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);

/* --- Layouts ------------------------------------------------------------------------------------
 */

#define AS_LARGE(ours, theirs) \
    static_assert(sizeof(ours) == sizeof(theirs) && alignof(ours) == alignof(theirs), #ours);
#define AT(ours, field, theirs, their_field) \
    static_assert(offsetof(ours, field) == offsetof(theirs, their_field), #field)

AS_LARGE(weft_cu_device, CUdevice)
AS_LARGE(weft_cu_address, CUdeviceptr)
AS_LARGE(weft_cu_memory, CUmemGenericAllocationHandle)
AS_LARGE(struct weft_cu_uuid, CUuuid)
AS_LARGE(struct weft_cu_location, CUmemLocation)
AT(struct weft_cu_location, type, CUmemLocation, type);
AT(struct weft_cu_location, id, CUmemLocation, id);

AS_LARGE(struct weft_cu_memory_properties, CUmemAllocationProp)
AT(struct weft_cu_memory_properties, type, CUmemAllocationProp, type);
AT(struct weft_cu_memory_properties, handle_types, CUmemAllocationProp, requestedHandleTypes);
AT(struct weft_cu_memory_properties, location, CUmemAllocationProp, location);
AT(struct weft_cu_memory_properties, flags, CUmemAllocationProp, allocFlags);

AS_LARGE(struct weft_cu_access, CUmemAccessDesc)
AT(struct weft_cu_access, location, CUmemAccessDesc, location);
AT(struct weft_cu_access, flags, CUmemAccessDesc, flags);

/* A wait and a write differ in names only. */
AS_LARGE(union weft_cu_word_op, CUstreamBatchMemOpParams)
AT(union weft_cu_word_op, operation, CUstreamBatchMemOpParams, operation);
AT(union weft_cu_word_op, address, CUstreamBatchMemOpParams, waitValue.address);
AT(union weft_cu_word_op, value, CUstreamBatchMemOpParams, waitValue.value);
AT(union weft_cu_word_op, value64, CUstreamBatchMemOpParams, waitValue.value64);
AT(union weft_cu_word_op, flags, CUstreamBatchMemOpParams, waitValue.flags);
AT(union weft_cu_word_op, address, CUstreamBatchMemOpParams, writeValue.address);
AT(union weft_cu_word_op, value64, CUstreamBatchMemOpParams, writeValue.value64);
AT(union weft_cu_word_op, flags, CUstreamBatchMemOpParams, writeValue.flags);

/* Its alignment was 64 before CUDA 13. */
static_assert(sizeof(struct weft_cu_tensor_map) == sizeof(CUtensorMap) &&
                  alignof(struct weft_cu_tensor_map) >= alignof(CUtensorMap),
              "struct weft_cu_tensor_map");

AS_LARGE(struct weft_cu_launch_attribute, CUlaunchAttribute)
AT(struct weft_cu_launch_attribute, id, CUlaunchAttribute, id);
AT(struct weft_cu_launch_attribute, value.cluster, CUlaunchAttribute, value.clusterDim);
AS_LARGE(struct weft_cu_launch_config, CUlaunchConfig)
AT(struct weft_cu_launch_config, blocks, CUlaunchConfig, gridDimX);
AT(struct weft_cu_launch_config, threads, CUlaunchConfig, blockDimX);
AT(struct weft_cu_launch_config, shared_bytes, CUlaunchConfig, sharedMemBytes);
AT(struct weft_cu_launch_config, stream, CUlaunchConfig, hStream);
AT(struct weft_cu_launch_config, attributes, CUlaunchConfig, attrs);
AT(struct weft_cu_launch_config, nattributes, CUlaunchConfig, numAttrs);

/* --- cuBLASLt ------------------------------------------------------------------------------------
 */

#define COMPARE_LT(name, arguments) \
    static_assert(alike<decltype(weft_cublaslt::name), decltype(&::name)>::value(), #name);
WEFT_LT_CALLS(COMPARE_LT)

SAME(WEFT_LT_SUCCESS, CUBLAS_STATUS_SUCCESS);
SAME(WEFT_LT_ALLOC_FAILED, CUBLAS_STATUS_ALLOC_FAILED);
SAME(WEFT_LT_NOT_SUPPORTED, CUBLAS_STATUS_NOT_SUPPORTED);
SAME(WEFT_LT_R_32F, CUDA_R_32F);
SAME(WEFT_LT_R_64F, CUDA_R_64F);
SAME(WEFT_LT_R_16F, CUDA_R_16F);
SAME(WEFT_LT_R_16BF, CUDA_R_16BF);
SAME(WEFT_LT_R_8F_E4M3, CUDA_R_8F_E4M3);
SAME(WEFT_LT_R_8F_E5M2, CUDA_R_8F_E5M2);
SAME(WEFT_LT_COMPUTE_32F, CUBLAS_COMPUTE_32F);
SAME(WEFT_LT_COMPUTE_64F, CUBLAS_COMPUTE_64F);
SAME(WEFT_LT_COMPUTE_32F_FAST_TF32, CUBLAS_COMPUTE_32F_FAST_TF32);
SAME(WEFT_LT_DESC_TRANSA, CUBLASLT_MATMUL_DESC_TRANSA);
SAME(WEFT_LT_DESC_TRANSB, CUBLASLT_MATMUL_DESC_TRANSB);
SAME(WEFT_LT_DESC_A_SCALE_POINTER, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER);
SAME(WEFT_LT_DESC_B_SCALE_POINTER, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER);
SAME(WEFT_LT_OP_N, CUBLAS_OP_N);
SAME(WEFT_LT_OP_T, CUBLAS_OP_T);
SAME(WEFT_LT_PREF_WORKSPACE_BYTES, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
SAME(WEFT_LT_PREF_ALIGNMENT_A, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
SAME(WEFT_LT_PREF_ALIGNMENT_A + 1, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES);
SAME(WEFT_LT_PREF_ALIGNMENT_A + 2, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES);
SAME(WEFT_LT_PREF_ALIGNMENT_A + 3, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);

AS_LARGE(struct weft_lt_heuristic, cublasLtMatmulHeuristicResult_t)
AT(struct weft_lt_heuristic, algorithm, cublasLtMatmulHeuristicResult_t, algo);
AT(struct weft_lt_heuristic, workspace_bytes, cublasLtMatmulHeuristicResult_t, workspaceSize);
AT(struct weft_lt_heuristic, status, cublasLtMatmulHeuristicResult_t, state);
