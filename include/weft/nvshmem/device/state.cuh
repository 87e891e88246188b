/* SPDX-License-Identifier: BSD-3-Clause */
/* NVSHMEM's types, and the state of a translation unit: its kernels' view of the job. */
#ifndef WEFT_NVSHMEM_STATE_CUH
#define WEFT_NVSHMEM_STATE_CUH

/* The target of the compilation: kernels, the host, or both. WEFT_DEVICE_HOST: kernels for an
 * emulated GPU. */
#if defined(__CUDACC__) || defined(__NVPTX__) || defined(WEFT_DEVICE_HOST)
#define WEFT_NVSHMEM_KERNEL
#endif
#if !defined(__CUDACC_RTC__) && (defined(__CUDACC__) || !defined(WEFT_NVSHMEM_KERNEL))
#define WEFT_NVSHMEM_HOST
#endif

/* 1 if the code being compiled runs on a GPU. */
#if defined(__CUDA_ARCH__) || !defined(WEFT_NVSHMEM_HOST)
#define WEFT_NVSHMEM_ON_GPU 1
#else
#define WEFT_NVSHMEM_ON_GPU 0
#endif

#ifdef WEFT_NVSHMEM_HOST
#include <assert.h> /* programs for NVSHMEM expect its headers to include it */
#include <shmem.h>
#include <shmemx.h>
#endif
#include "weft/device.cuh"
#include "weft/nvshmem/device/number.cuh"
#include "shmem_types.h"
#if defined(WEFT_NVSHMEM_HOST) && defined(__cplusplus)
#if __has_include(<cuda_runtime.h>)
#define WEFT_NVSHMEM_HAS_CUDA
#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#endif
#endif

/* Defines a function for kernels and for the host. */
#if defined(__CUDACC__) && defined(WEFT_NVSHMEM_HOST)
#define WEFT_NVSHMEM_BOTH static __host__ __device__ __forceinline__
#elif defined(WEFT_NVSHMEM_KERNEL)
#define WEFT_NVSHMEM_BOTH WEFT_DEVICE
#else
#define WEFT_NVSHMEM_BOTH static inline __attribute__((unused))
#endif

/* --- Teams and types -------------------------------------------------------------------------- */

typedef int32_t nvshmem_team_t;
enum {
    NVSHMEM_TEAM_INVALID = -1,
    NVSHMEM_TEAM_WORLD = 0,
    NVSHMEM_TEAM_SHARED = 1,
    NVSHMEMX_TEAM_NODE = 2,
    WEFT_NVSHMEM_TEAMS_MADE = 3, /* the first handle of teams that the program makes */
    WEFT_NVSHMEM_TEAMS = 64,
};

/* NVSHMEM's RMA types: the standard's except long double, which GPUs do not have, and the 16-bit
 * types of CUDA's headers. */
#ifdef WEFT_NVSHMEM_HAS_CUDA
#define WEFT_NVSHMEM_HALVES(X, A) X(half, half, A) X(bfloat16, __nv_bfloat16, A)
#else
#define WEFT_NVSHMEM_HALVES(X, A)
#endif
#define WEFT_NVSHMEM_STANDARD_TYPES(X, A) \
    SHMEM_AMO_EXTENDED_TYPES(X, A) SHMEM_FIXED_NARROW(X, A) SHMEM_CHARS(X, A) SHMEM_SHORTS(X, A)
#define WEFT_NVSHMEM_RMA_TYPES(X, A) WEFT_NVSHMEM_STANDARD_TYPES(X, A) WEFT_NVSHMEM_HALVES(X, A)

/* --- State ------------------------------------------------------------------------------------ */

/* teams[handle] is a team's struct in this GPU's memory, or NULL. WORLD's struct is a copy in the
 * state, which kernels read without a load from memory. */
struct weft_nvshmem_state {
    struct weft_device_team world;
    const struct weft_device_team *const *teams;
};

#ifdef WEFT_NVSHMEM_KERNEL

/* Before the host fills the state there is no PE: nvshmem_my_pe() is -1, nvshmem_n_pes() 0. */
#define WEFT_NVSHMEM_EMPTY \
    { {0, 0, -1, 0, 0, 0, 0, NULL, 0, 0, NULL, NULL, 0, 0, 0, NULL, NULL, 0, 0, 0, {0}}, NULL }
#ifdef __CUDACC_RTC__
extern "C" __constant__ struct weft_nvshmem_state weft_nvshmem_state = WEFT_NVSHMEM_EMPTY;
#elif defined(__CUDACC__)
static __constant__ struct weft_nvshmem_state weft_nvshmem_state = WEFT_NVSHMEM_EMPTY;
#elif defined(__NVPTX__)
__attribute__((address_space(4))) struct weft_nvshmem_state weft_nvshmem_state = WEFT_NVSHMEM_EMPTY;
#else
extern "C" {
__attribute__((weak, visibility("default"))) struct weft_nvshmem_state weft_nvshmem_state =
    WEFT_NVSHMEM_EMPTY;
}
#endif

#define WEFT_NVSHMEM_WORLD ((const weft_device_team *)&weft_nvshmem_state.world)

/* Returns NULL if this PE has no such team. */
WEFT_DEVICE const weft_device_team *weft_nvshmem_team(nvshmem_team_t team) {
    if (team == NVSHMEM_TEAM_WORLD)
        return WEFT_NVSHMEM_WORLD;
    if (team < 0 || team >= WEFT_NVSHMEM_TEAMS || !weft_nvshmem_state.teams)
        return NULL;
    return weft_nvshmem_state.teams[team];
}

#endif

/* --- Bits of words: `bytes` is 1, 2, 4 or 8, a compile-time constant -------------------------- */

#ifdef WEFT_NVSHMEM_KERNEL
WEFT_DEVICE uint64_t weft_nvshmem_bits(const void *value, size_t bytes) {
    return bytes == 8   ? ((const struct weft_bytes8 *)value)->value
           : bytes == 4 ? ((const struct weft_bytes4 *)value)->value
           : bytes == 2 ? ((const struct weft_bytes2 *)value)->value
                        : ((const struct weft_bytes1 *)value)->value;
}
WEFT_DEVICE void weft_nvshmem_set_bits(void *value, size_t bytes, uint64_t bits) {
    if (bytes == 8)
        ((struct weft_bytes8 *)value)->value = bits;
    else if (bytes == 4)
        ((struct weft_bytes4 *)value)->value = (uint32_t)bits;
    else if (bytes == 2)
        ((struct weft_bytes2 *)value)->value = (uint16_t)bits;
    else
        ((struct weft_bytes1 *)value)->value = (uint8_t)bits;
}
#endif

#endif
