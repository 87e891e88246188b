/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernels' access to memory that others read and write: one instruction of PTX a function, all in
 * the scope of the whole system, for words of 32 and of 64 bits.
 *
 * Without a CUDA compiler the same kernels are C++ functions that one thread of a processor runs:
 * that is how they are tested where there is no GPU. Whoever pretends one (WEFT_HOST_THREADS) may
 * run as many threads as a launch has. */
#ifndef WEFT_BASE_GPU_CUH
#define WEFT_BASE_GPU_CUH

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* 16 bytes that are loaded and stored by one instruction; each half of them is never torn. */
struct __attribute__((aligned(16))) weft_quad {
    uint32_t a, b, c, d;
};

#ifdef __CUDACC__

#define WEFT_DEVICE static __device__ __forceinline__
#define WEFT_UNROLL _Pragma("unroll")

/* --- Loads and stores: weft_<instruction>_<order>_sys --------------------------------------------
 */

#define WEFT_PTX_LOAD(order, bits, letter)                                         \
    WEFT_DEVICE uint##bits##_t weft_ld_##order##_sys(const uint##bits##_t *word) { \
        uint##bits##_t value;                                                      \
        asm volatile("ld." #order ".sys.global.u" #bits " %0, [%1];"               \
                     : "=" letter(value)                                           \
                     : "l"(word)                                                   \
                     : "memory");                                                  \
        return value;                                                              \
    }
#define WEFT_PTX_STORE(order, bits, letter)                                              \
    WEFT_DEVICE void weft_st_##order##_sys(uint##bits##_t *word, uint##bits##_t value) { \
        asm volatile("st." #order ".sys.global.u" #bits " [%0], %1;"                     \
                     :                                                                   \
                     : "l"(word), letter(value)                                          \
                     : "memory");                                                        \
    }
WEFT_PTX_LOAD(relaxed, 32, "r")
WEFT_PTX_LOAD(relaxed, 64, "l")
WEFT_PTX_LOAD(acquire, 32, "r")
WEFT_PTX_LOAD(acquire, 64, "l")
WEFT_PTX_STORE(relaxed, 32, "r")
WEFT_PTX_STORE(relaxed, 64, "l")
WEFT_PTX_STORE(release, 32, "r")
WEFT_PTX_STORE(release, 64, "l")
#undef WEFT_PTX_LOAD
#undef WEFT_PTX_STORE

WEFT_DEVICE struct weft_quad weft_ld_relaxed_sys(const struct weft_quad *quad) {
    struct weft_quad value;
    asm volatile("ld.relaxed.sys.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(value.a), "=r"(value.b), "=r"(value.c), "=r"(value.d)
                 : "l"(quad)
                 : "memory");
    return value;
}
WEFT_DEVICE void weft_st_relaxed_sys(struct weft_quad *quad, struct weft_quad value) {
    asm volatile("st.relaxed.sys.global.v4.u32 [%0], {%1, %2, %3, %4};"
                 :
                 : "l"(quad), "r"(value.a), "r"(value.b), "r"(value.c), "r"(value.d)
                 : "memory");
}

/* --- Atomics: red has no result, atom's is the word before ---------------------------------------
 */

#define WEFT_PTX_RED(operation, type, bits, letter)                                           \
    WEFT_DEVICE void weft_red_##operation##_sys(uint##bits##_t *word, uint##bits##_t value) { \
        asm volatile("red.release.sys.global." #operation "." #type #bits " [%0], %1;"        \
                     :                                                                        \
                     : "l"(word), letter(value)                                               \
                     : "memory");                                                             \
    }
#define WEFT_PTX_ATOM(operation, type, bits, letter)                                        \
    WEFT_DEVICE uint##bits##_t weft_atom_##operation##_sys(uint##bits##_t *word,            \
                                                           uint##bits##_t value) {          \
        uint##bits##_t before;                                                              \
        asm volatile("atom.acq_rel.sys.global." #operation "." #type #bits " %0, [%1], %2;" \
                     : "=" letter(before)                                                   \
                     : "l"(word), letter(value)                                             \
                     : "memory");                                                           \
        return before;                                                                      \
    }
#define WEFT_PTX_CAS(name, order, bits, letter)                                   \
    WEFT_DEVICE uint##bits##_t weft_atom_cas##name##_sys(                         \
        uint##bits##_t *word, uint##bits##_t cond, uint##bits##_t value) {        \
        uint##bits##_t before;                                                    \
        asm volatile("atom." order ".sys.global.cas.b" #bits " %0, [%1], %2, %3;" \
                     : "=" letter(before)                                         \
                     : "l"(word), letter(cond), letter(value)                     \
                     : "memory");                                                 \
        return before;                                                            \
    }
#define WEFT_PTX_ATOMICS(bits, letter)   \
    WEFT_PTX_RED(add, u, bits, letter)   \
    WEFT_PTX_ATOM(add, u, bits, letter)  \
    WEFT_PTX_ATOM(and, b, bits, letter)  \
    WEFT_PTX_ATOM(or, b, bits, letter)   \
    WEFT_PTX_ATOM(xor, b, bits, letter)  \
    WEFT_PTX_ATOM(exch, b, bits, letter) \
    WEFT_PTX_CAS(, "acq_rel", bits, letter)
WEFT_PTX_ATOMICS(32, "r")
WEFT_PTX_ATOMICS(64, "l")
WEFT_PTX_CAS(_acquire, "acquire", 32, "r")
WEFT_PTX_CAS(_release, "release", 32, "r")
#undef WEFT_PTX_RED
#undef WEFT_PTX_ATOM
#undef WEFT_PTX_CAS
#undef WEFT_PTX_ATOMICS

/* --- Order, time, the end ------------------------------------------------------------------------
 */

WEFT_DEVICE void weft_fence_sys(void) {
    asm volatile("fence.acq_rel.sys;" ::: "memory");
}

/* Nanoseconds, in steps of up to 1 us. */
WEFT_DEVICE uint64_t weft_globaltimer(void) {
    uint64_t now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

/* Lets others have the processor: nothing to do for a GPU. */
WEFT_DEVICE void weft_spin_yield(void) {}

/* Rests for so long, or up to twice as long; a millisecond at most. */
WEFT_DEVICE void weft_nanosleep(uint32_t ns) {
    asm volatile("nanosleep.u32 %0;" ::"r"(ns));
}

WEFT_DEVICE void weft_trap(void) {
    asm volatile("trap;");
}

/* An array of a block's own, in a kernel: as __shared__ type name[count]. */
#define WEFT_SHARED(type, name, count) __shared__ type name[count]

#else /* one thread of a processor */

#include <stdlib.h>
#include <string.h>
#include <sched.h>
#include <time.h>

#define WEFT_DEVICE static inline __attribute__((unused))
#define WEFT_UNROLL
#ifndef __global__
#define __global__
#endif
#ifndef __device__
#define __device__
#endif
#ifndef __launch_bounds__
#define __launch_bounds__(...)
#endif

/* Whoever pretends a GPU may say that its atomics on a word are none. */
#ifndef WEFT_HOST_TORN
#define WEFT_HOST_TORN(word) false
#endif

/* And it may run the threads of a launch (WEFT_HOST_THREADS), and more of them while one waits. */
#ifndef WEFT_HOST_YIELD
#define WEFT_HOST_YIELD() sched_yield()
#endif
#ifndef WEFT_HOST_REST
#define WEFT_HOST_REST(ns) ((void)(ns), WEFT_HOST_YIELD())
#endif
#ifndef WEFT_SHARED
#define WEFT_SHARED(type, name, count) static thread_local type name[count]
#endif

#define WEFT_HOST_CHANGE(T, name, after, atomically)        \
    WEFT_DEVICE T name(T *word, T value) {                  \
        if (!WEFT_HOST_TORN(word))                          \
            return atomically;                              \
        T before = __atomic_load_n(word, __ATOMIC_SEQ_CST); \
        sched_yield();                                      \
        __atomic_store_n(word, after, __ATOMIC_SEQ_CST);    \
        return before;                                      \
    }

#define WEFT_HOST_WORD(T)                                                        \
    WEFT_DEVICE T weft_ld_relaxed_sys(const T *word) {                           \
        return __atomic_load_n(word, __ATOMIC_RELAXED);                          \
    }                                                                            \
    WEFT_DEVICE T weft_ld_acquire_sys(const T *word) {                           \
        return __atomic_load_n(word, __ATOMIC_ACQUIRE);                          \
    }                                                                            \
    WEFT_DEVICE void weft_st_relaxed_sys(T *word, T value) {                     \
        __atomic_store_n(word, value, __ATOMIC_RELAXED);                         \
    }                                                                            \
    WEFT_DEVICE void weft_st_release_sys(T *word, T value) {                     \
        __atomic_store_n(word, value, __ATOMIC_RELEASE);                         \
    }                                                                            \
    WEFT_HOST_CHANGE(T, weft_atom_add_sys, (T)(before + value),                  \
                     __atomic_fetch_add(word, value, __ATOMIC_ACQ_REL))          \
    WEFT_HOST_CHANGE(T, weft_atom_and_sys, (T)(value & before),                  \
                     __atomic_fetch_and(word, value, __ATOMIC_ACQ_REL))          \
    WEFT_HOST_CHANGE(T, weft_atom_or_sys, value | before,                        \
                     __atomic_fetch_or(word, value, __ATOMIC_ACQ_REL))           \
    WEFT_HOST_CHANGE(T, weft_atom_xor_sys, value ^ before,                       \
                     __atomic_fetch_xor(word, value, __ATOMIC_ACQ_REL))          \
    WEFT_HOST_CHANGE(T, weft_atom_exch_sys, value,                               \
                     __atomic_exchange_n(word, value, __ATOMIC_ACQ_REL))         \
    WEFT_DEVICE void weft_red_add_sys(T *word, T value) {                        \
        weft_atom_add_sys(word, value);                                          \
    }                                                                            \
    WEFT_DEVICE T weft_atom_cas_sys(T *word, T cond, T value) {                  \
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
WEFT_HOST_WORD(uint32_t)
WEFT_HOST_WORD(uint64_t)
#undef WEFT_HOST_WORD
#undef WEFT_HOST_CHANGE

WEFT_DEVICE struct weft_quad weft_ld_relaxed_sys(const struct weft_quad *quad) {
    struct weft_quad value;
    const uint64_t *from = (const uint64_t *)quad;
    uint64_t halves[2] = {weft_ld_relaxed_sys(&from[0]), weft_ld_relaxed_sys(&from[1])};
    memcpy(&value, halves, sizeof value);
    return value;
}
WEFT_DEVICE void weft_st_relaxed_sys(struct weft_quad *quad, struct weft_quad value) {
    uint64_t halves[2], *to = (uint64_t *)quad;
    memcpy(halves, &value, sizeof value);
    weft_st_relaxed_sys(&to[0], halves[0]);
    weft_st_relaxed_sys(&to[1], halves[1]);
}

#define weft_atom_cas_acquire_sys weft_atom_cas_sys
#define weft_atom_cas_release_sys weft_atom_cas_sys

WEFT_DEVICE void weft_fence_sys(void) {
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

WEFT_DEVICE uint64_t weft_globaltimer(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

WEFT_DEVICE void weft_spin_yield(void) {
    WEFT_HOST_YIELD();
}

WEFT_DEVICE void weft_nanosleep(uint32_t ns) {
    WEFT_HOST_REST(ns);
}

WEFT_DEVICE void weft_trap(void) {
    abort();
}

#endif

/* --- Who am I ------------------------------------------------------------------------------------
 */

#if defined(__CUDACC__) || defined(WEFT_HOST_THREADS)

WEFT_DEVICE uint32_t weft_block_index(void) {
    return blockIdx.x;
}
WEFT_DEVICE uint32_t weft_block_count(void) {
    return gridDim.x;
}
WEFT_DEVICE uint32_t weft_block_thread(void) {
    return threadIdx.x;
}
WEFT_DEVICE uint32_t weft_block_threads(void) {
    return blockDim.x;
}
WEFT_DEVICE void weft_block_sync(void) {
    __syncthreads();
}

#else

WEFT_DEVICE uint32_t weft_block_index(void) {
    return 0;
}
WEFT_DEVICE uint32_t weft_block_count(void) {
    return 1;
}
WEFT_DEVICE uint32_t weft_block_thread(void) {
    return 0;
}
WEFT_DEVICE uint32_t weft_block_threads(void) {
    return 1;
}
WEFT_DEVICE void weft_block_sync(void) {}

#endif

/* This thread's index, and the number of threads, over all blocks. */
WEFT_DEVICE size_t weft_thread_index(void) {
    return (size_t)weft_block_index() * weft_block_threads() + weft_block_thread();
}
WEFT_DEVICE size_t weft_thread_count(void) {
    return (size_t)weft_block_count() * weft_block_threads();
}

#endif
