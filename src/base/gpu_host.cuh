/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions of weft/device/ptx.cuh for a C++ compiler of the host: a kernel is a function that
 * one thread of a processor runs. So kernels can be tested without a GPU.
 *
 * A pretended GPU may run all threads of a launch (WEFT_HOST_THREADS), and define its own kind of
 * memory (WEFT_HOST_MEMORY). */
#ifndef WEFT_BASE_GPU_HOST_CUH
#define WEFT_BASE_GPU_HOST_CUH

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "weft/device/ptx.cuh"

#ifndef __CUDACC__

#define WEFT_UNLIKELY(condition) __builtin_expect(!!(condition), 0)
#define WEFT_UNROLL
#define WEFT_ROLLED
#define WEFT_FORGET(variable) ((void)(variable))
#ifndef __global__
#define __global__
#endif
#ifndef __device__
#define __device__
#endif
#ifndef __launch_bounds__
#define __launch_bounds__(...)
#endif

/* --- Memory --------------------------------------------------------------------------------------
 */

/* Whether updates of a word are not atomic, for tests. */
#ifndef WEFT_HOST_TORN
#define WEFT_HOST_TORN(word) false
#endif

/* `order` is one of __ATOMIC_*. A fence, or an atomic on `word`, first calls weft_host_order. */
#ifndef WEFT_HOST_MEMORY
template <class T> WEFT_DEVICE T weft_host_load(const T *word, int order) {
    return __atomic_load_n(word, order);
}
template <class T> WEFT_DEVICE void weft_host_store(T *word, T value, int order) {
    __atomic_store_n(word, value, order);
}
WEFT_DEVICE void weft_host_order(const void *word, int order) {
    (void)word, (void)order;
}
template <class T> WEFT_DEVICE T weft_host_load_weak(const T *from) {
    return *from;
}
template <class T> WEFT_DEVICE void weft_host_store_weak(T *to, T value) {
    *to = value;
}
#endif

/* Replaces the value `before` by `after`, in one atomic access, or, for a torn word, in two. */
#define WEFT_HOST_CHANGE(T, suffix, name, order, after, atomically) \
    WEFT_DEVICE T weft_##name##_sys_##suffix(T *word, T value) {    \
        weft_host_order(word, order);                               \
        if (!WEFT_HOST_TORN(word))                                  \
            return atomically;                                      \
        T before = __atomic_load_n(word, __ATOMIC_SEQ_CST);         \
        sched_yield();                                              \
        __atomic_store_n(word, after, __ATOMIC_SEQ_CST);            \
        return before;                                              \
    }
#define WEFT_HOST_RED(T, suffix, name, order, operation, after)         \
    WEFT_HOST_CHANGE(T, suffix, red_##name##_before, order, after,      \
                     __atomic_fetch_##operation(word, value, order))    \
    WEFT_DEVICE void weft_red_##name##_sys_##suffix(T *word, T value) { \
        weft_red_##name##_before_sys_##suffix(word, value);             \
    }
#define WEFT_HOST_CAS(T, suffix, name, order)                                    \
    WEFT_DEVICE T weft_atom_##name##_sys_##suffix(T *word, T cond, T value) {    \
        weft_host_order(word, order);                                            \
        if (WEFT_HOST_TORN(word)) {                                              \
            T before = __atomic_load_n(word, __ATOMIC_SEQ_CST);                  \
            sched_yield();                                                       \
            if (before == cond)                                                  \
                __atomic_store_n(word, value, __ATOMIC_SEQ_CST);                 \
            return before;                                                       \
        }                                                                        \
        __atomic_compare_exchange_n(word, &cond, value, false, __ATOMIC_ACQ_REL, \
                                    __ATOMIC_ACQUIRE);                           \
        return cond;                                                             \
    }

#define WEFT_HOST_ATOMS(T, suffix, name, order)                             \
    WEFT_HOST_CHANGE(T, suffix, atom_add##name, order, (T)(before + value), \
                     __atomic_fetch_add(word, value, order))                \
    WEFT_HOST_CHANGE(T, suffix, atom_and##name, order, (T)(value & before), \
                     __atomic_fetch_and(word, value, order))                \
    WEFT_HOST_CHANGE(T, suffix, atom_or##name, order, value | before,       \
                     __atomic_fetch_or(word, value, order))                 \
    WEFT_HOST_CHANGE(T, suffix, atom_xor##name, order, value ^ before,      \
                     __atomic_fetch_xor(word, value, order))                \
    WEFT_HOST_CHANGE(T, suffix, atom_exch##name, order, value,              \
                     __atomic_exchange_n(word, value, order))               \
    WEFT_HOST_CAS(T, suffix, cas##name, order)

#define WEFT_HOST_WORD(T, suffix)                                                     \
    WEFT_DEVICE T weft_ld_relaxed_sys_##suffix(const T *word) {                       \
        return weft_host_load(word, __ATOMIC_RELAXED);                                \
    }                                                                                 \
    WEFT_DEVICE T weft_ld_acquire_sys_##suffix(const T *word) {                       \
        return weft_host_load(word, __ATOMIC_ACQUIRE);                                \
    }                                                                                 \
    WEFT_DEVICE void weft_st_relaxed_sys_##suffix(T *word, T value) {                 \
        weft_host_store(word, value, __ATOMIC_RELAXED);                               \
    }                                                                                 \
    WEFT_DEVICE void weft_st_release_sys_##suffix(T *word, T value) {                 \
        weft_host_store(word, value, __ATOMIC_RELEASE);                               \
    }                                                                                 \
    WEFT_HOST_ATOMS(T, suffix, , __ATOMIC_ACQ_REL)                                    \
    WEFT_HOST_ATOMS(T, suffix, _relaxed, __ATOMIC_RELAXED)                            \
    WEFT_HOST_RED(T, suffix, add, __ATOMIC_RELEASE, add, (T)(before + value))         \
    WEFT_HOST_RED(T, suffix, add_relaxed, __ATOMIC_RELAXED, add, (T)(before + value)) \
    WEFT_HOST_RED(T, suffix, and_relaxed, __ATOMIC_RELAXED, and, (T)(value & before)) \
    WEFT_HOST_RED(T, suffix, or_relaxed, __ATOMIC_RELAXED, or, value | before)        \
    WEFT_HOST_RED(T, suffix, xor_relaxed, __ATOMIC_RELAXED, xor, value ^ before)      \
    WEFT_HOST_CAS(T, suffix, cas_acquire, __ATOMIC_ACQUIRE)                           \
    WEFT_HOST_CAS(T, suffix, cas_release, __ATOMIC_RELEASE)
WEFT_HOST_WORD(uint32_t, u32)
WEFT_HOST_WORD(uint64_t, u64)
#undef WEFT_HOST_WORD
#undef WEFT_HOST_CAS
#undef WEFT_HOST_RED
#undef WEFT_HOST_ATOMS
#undef WEFT_HOST_CHANGE

/* An atomic of the host is complete as soon as its result is there. */
WEFT_DEVICE void weft_await_u32(uint32_t value) {
    (void)value;
}
WEFT_DEVICE void weft_await_u64(uint64_t value) {
    (void)value;
}

/* The host has one scope. */
WEFT_DEVICE uint64_t weft_ld_acquire_gpu_u64(const uint64_t *word) {
    return weft_ld_acquire_sys_u64(word);
}
WEFT_DEVICE void weft_st_release_gpu_u64(uint64_t *word, uint64_t value) {
    weft_st_release_sys_u64(word, value);
}
WEFT_DEVICE uint64_t weft_atom_add_gpu_u64(uint64_t *word, uint64_t value) {
    return weft_atom_add_sys_u64(word, value);
}

WEFT_DEVICE struct weft_quad weft_ld_relaxed_sys_quad(const struct weft_quad *quad) {
    struct weft_quad value;
    const uint64_t *from = (const uint64_t *)quad;
    uint64_t halves[2] = {weft_ld_relaxed_sys_u64(&from[0]), weft_ld_relaxed_sys_u64(&from[1])};
    memcpy(&value, halves, sizeof value);
    return value;
}
WEFT_DEVICE void weft_st_relaxed_sys_quad(struct weft_quad *quad, struct weft_quad value) {
    uint64_t halves[2], *to = (uint64_t *)quad;
    memcpy(halves, &value, sizeof value);
    weft_st_relaxed_sys_u64(&to[0], halves[0]);
    weft_st_relaxed_sys_u64(&to[1], halves[1]);
}

#define WEFT_HOST_WEAK(bytes)                                                                    \
    WEFT_DEVICE weft_bytes##bytes weft_ld_weak_bytes##bytes(const weft_bytes##bytes *from) {     \
        return weft_host_load_weak(from);                                                        \
    }                                                                                            \
    WEFT_DEVICE void weft_st_weak_bytes##bytes(weft_bytes##bytes *to, weft_bytes##bytes value) { \
        weft_host_store_weak(to, value);                                                         \
    }
WEFT_HOST_WEAK(1)
WEFT_HOST_WEAK(2)
WEFT_HOST_WEAK(4)
WEFT_HOST_WEAK(8)
WEFT_HOST_WEAK(16)
#undef WEFT_HOST_WEAK

WEFT_DEVICE void weft_fence_sys(void) {
    weft_host_order(NULL, __ATOMIC_SEQ_CST);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

#define WEFT_FENCE_ACQUIRE
WEFT_DEVICE void weft_fence_acquire_sys(void) {
    weft_host_order(NULL, __ATOMIC_ACQUIRE);
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
}

/* --- Time, the end, the block --------------------------------------------------------------------
 */

WEFT_DEVICE uint64_t weft_globaltimer(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

WEFT_DEVICE void weft_spin_yield(void) {
#ifdef WEFT_HOST_THREADS
    kernel_yield();
#else
    sched_yield();
#endif
}

/* A test of waits may count their pauses. */
#ifndef WEFT_HOST_REST
#define WEFT_HOST_REST(ns) ((void)(ns), weft_spin_yield())
#endif
WEFT_DEVICE void weft_nanosleep(uint32_t ns) {
    WEFT_HOST_REST(ns);
}

WEFT_DEVICE uint32_t weft_warp_ld_relaxed_sys_u32(const uint32_t *word) {
    return weft_ld_relaxed_sys_u32(word);
}

WEFT_DEVICE void weft_trap(void) {
    abort();
}

#ifdef WEFT_HOST_THREADS

#define WEFT_HOST_PLACE(function, of_thread, of_one) \
    WEFT_DEVICE uint32_t weft_##function(void) {     \
        return of_thread;                            \
    }
WEFT_DEVICE void weft_block_sync(void) {
    __syncthreads();
}
WEFT_DEVICE uint32_t weft_block_sync_any(uint32_t mine) {
    return (uint32_t)__syncthreads_or((int)mine);
}

#else

#define WEFT_SHARED(type, name, count) static thread_local type name[count]

#define WEFT_HOST_PLACE(function, of_thread, of_one) \
    WEFT_DEVICE uint32_t weft_##function(void) {     \
        return of_one;                               \
    }
WEFT_DEVICE void weft_block_sync(void) {}
WEFT_DEVICE uint32_t weft_block_sync_any(uint32_t mine) {
    return mine != 0;
}

#endif

WEFT_HOST_PLACE(block_index, blockIdx.x, 0)
WEFT_HOST_PLACE(block_index_y, blockIdx.y, 0)
WEFT_HOST_PLACE(block_index_z, blockIdx.z, 0)
WEFT_HOST_PLACE(block_count, gridDim.x, 1)
WEFT_HOST_PLACE(block_count_y, gridDim.y, 1)
WEFT_HOST_PLACE(block_count_z, gridDim.z, 1)
WEFT_HOST_PLACE(block_thread, threadIdx.x, 0)
WEFT_HOST_PLACE(block_thread_y, threadIdx.y, 0)
WEFT_HOST_PLACE(block_thread_z, threadIdx.z, 0)
WEFT_HOST_PLACE(block_threads, blockDim.x, 1)
WEFT_HOST_PLACE(block_threads_y, blockDim.y, 1)
WEFT_HOST_PLACE(block_threads_z, blockDim.z, 1)
#undef WEFT_HOST_PLACE

/* --- The warp: where threads are pretended, as on a GPU, else each thread is one ----------------
 */

#ifdef WEFT_HOST_THREADS

enum { WEFT_WARP_LANES = warpSize };

WEFT_DEVICE uint32_t weft_lane(void) {
    return kernel_lane();
}
WEFT_DEVICE void weft_warp_sync(void) {
    __syncwarp();
}
WEFT_DEVICE uint32_t weft_warp_sync_any(uint32_t mine) {
    return (uint32_t)__any_sync(~0u, mine != 0);
}
WEFT_DEVICE uint32_t weft_warp_broadcast_u32(uint32_t value, uint32_t lane) {
    return __shfl_sync(~0u, value, (int)lane);
}

#else

enum { WEFT_WARP_LANES = 1 };

WEFT_DEVICE uint32_t weft_lane(void) {
    return 0;
}
WEFT_DEVICE void weft_warp_sync(void) {}
WEFT_DEVICE uint32_t weft_warp_sync_any(uint32_t mine) {
    return mine != 0;
}
WEFT_DEVICE uint32_t weft_warp_broadcast_u32(uint32_t value, uint32_t lane) {
    (void)lane;
    return value;
}

#endif

WEFT_DEVICE void weft_dependency_wait(void) {}
WEFT_DEVICE void weft_dependency_trigger(void) {}

#endif

#endif
