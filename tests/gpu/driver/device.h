/* SPDX-License-Identifier: BSD-3-Clause */
/* CUDA's words for a C++ compiler of the host. What is PTX on a GPU, the kernels' own header has
 * for the host, too.
 *
 * A file of kernels whose threads wait for each other says
 *
 *     #define WEFT_KERNEL_THREADS
 *
 * anywhere at its top level: a launch then runs all of its blocks and threads, as fibres of one
 * thread of the host (grid.h). Threads switch where a block or a warp meets and in weft_spin_yield
 * (weft_spin calls it), so a loop that polls has to call one of them. Memory of a block is declared
 * by WEFT_SHARED(type, name, count). The kernels of other files run as one thread of one block,
 * whatever the launch says, which is faster. */
#ifndef TESTS_GPU_DRIVER_DEVICE_H
#define TESTS_GPU_DRIVER_DEVICE_H

#include "bulk.h"
#include "module.h"
#include <cstdlib>
#include <time.h>

#ifndef __global__ /* a mark, to find kernels */
#define __global__
#endif
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __grid_constant__

/* __shared__ type name[count], which a macro of that name could not give to each block. */
#define WEFT_SHARED(type, name, count)                  \
    static thread_local type name##_of_one[count] = {}; \
    type *const name = static_cast<type *>(kernel_shared(name##_of_one, sizeof name##_of_one))

struct double2 {
    double x, y;
};

/* A trap ends the kernel, not the process. */
#define abort()  kernel_trap()
#define __trap() kernel_trap()

/* The driver remembers when a kernel has last looked at the clock. */
#define clock_gettime(clock, now) kernel_clock(clock, now)

#define WEFT_HOST_TORN(word) kernel_tears(word)

/* <weft/device.cuh> and fused/hopper_ptx.cuh include them. */
#define WEFT_DEVICE_HOST "base/gpu_host.cuh"
#define WEFT_HOPPER_HOST "tests/gpu/driver/hopper_host.h"

#define WEFT_HOST_THREADS
#define threadIdx (kernel_place->thread)
#define blockIdx  (kernel_place->block)
#define blockDim  (kernel_place->threads)
#define gridDim   (kernel_place->blocks)

static inline void __syncthreads() {
    kernel_block_sync(false);
}
static inline int __syncthreads_or(int mine) {
    return kernel_block_sync(mine != 0);
}

/* The functions of a warp; lanes that have ended take no part. */
#define warpSize 32
static inline unsigned kernel_lane() {
    struct kernel_dim at = kernel_place->thread, size = kernel_place->threads;
    return (at.x + size.x * (at.y + size.y * at.z)) % warpSize;
}
static inline void __syncwarp() {
    uint32_t lanes;
    kernel_warp_meet(0, &lanes);
}
static inline unsigned __ballot_sync(unsigned, int mine) {
    uint32_t lanes, ballot = 0;
    const uint64_t *given = kernel_warp_meet(mine != 0, &lanes);
    for (unsigned lane = 0; lane < warpSize; lane++)
        if (lanes >> lane & 1 && given[lane])
            ballot |= 1u << lane;
    return ballot;
}
static inline int __any_sync(unsigned mask, int mine) {
    return __ballot_sync(mask, mine) != 0;
}
template <class T> static inline T __shfl_sync(unsigned, T mine, int lane) {
    uint32_t lanes;
    return (T)kernel_warp_meet((uint64_t)mine, &lanes)[lane % warpSize];
}

/* Memory, which WEFT_FAKE_WEAK=1 makes weak. An access is of 1, 2, 4 or 8 bytes, or of two times 8,
 * which arrive one by one. */
#define WEFT_HOST_MEMORY
template <class T> static inline void kernel_check(const T *at) {
    if ((uintptr_t)at % sizeof(T) != 0 && (sizeof(T) & (sizeof(T) - 1)) == 0)
        kernel_misaligned((const void *)at, sizeof(T));
}
template <class T> static inline T weft_host_load(const T *word, int order) {
    kernel_check(word);
    return kernel_is_weak ? (T)kernel_load(word, sizeof *word, order)
                          : __atomic_load_n(word, order);
}
template <class T> static inline void weft_host_store(T *word, T value, int order) {
    kernel_check(word);
    if (kernel_is_weak)
        kernel_store(word, value, sizeof *word, order);
    else
        __atomic_store_n(word, value, order);
}
static inline void weft_host_order(const void *word, int order) {
    if (kernel_is_weak)
        kernel_order(word, order);
}

template <class T> static inline T weft_host_load_weak(const T *from) {
    kernel_check(from);
    if (!kernel_is_weak)
        return *from;
    union {
        uint64_t words[(sizeof(T) + 7) / 8];
        T value;
    } loaded;
    for (size_t at = 0; at < sizeof(T); at += 8)
        loaded.words[at / 8] =
            kernel_load((const char *)from + at, sizeof(T) < 8 ? sizeof(T) : 8, KERNEL_WEAK);
    return loaded.value;
}
template <class T> static inline void weft_host_store_weak(T *to, T value) {
    kernel_check(to);
    if (!kernel_is_weak) {
        *to = value;
        return;
    }
    union {
        uint64_t words[(sizeof(T) + 7) / 8];
        T value;
    } stored = {};
    stored.value = value;
    for (size_t at = 0; at < sizeof(T); at += 8)
        kernel_store((char *)to + at, stored.words[at / 8], sizeof(T) < 8 ? sizeof(T) : 8,
                     KERNEL_WEAK);
}
static inline void __nanosleep(unsigned ns) {
    struct timespec pause = {0, (long)ns};
    nanosleep(&pause, NULL);
}

#endif
