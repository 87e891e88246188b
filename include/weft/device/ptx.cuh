/* SPDX-License-Identifier: BSD-3-Clause */
/* What kernels do in one instruction of PTX, a function each: loads, stores and atomics, mostly in
 * the scope of the whole system, fences, the time, and which thread this is. The other parts of
 * <weft/device.cuh> are made of these; a kernel may call them as well.
 *
 * The file is C, and C++ of CUDA as well: a clang without CUDA compiles it for nvptx64. Names end
 * in what they are about: _u32, _u64, _quad or _bytes16. */
#ifndef WEFT_DEVICE_PTX_CUH
#define WEFT_DEVICE_PTX_CUH

#include "weft/addr.h"

/* 16 bytes that are loaded and stored by one instruction; each half of them is never torn. */
struct __attribute__((aligned(16))) weft_quad {
    uint32_t a, b, c, d;
};

/* Types of the sizes that one instruction moves; they may alias any object. The largest is aligned,
 * or else compilers make two instructions of it. */
struct __attribute__((may_alias)) weft_bytes1 {
    uint8_t value;
};
struct __attribute__((may_alias)) weft_bytes2 {
    uint16_t value;
};
struct __attribute__((may_alias)) weft_bytes4 {
    uint32_t value;
};
struct __attribute__((may_alias)) weft_bytes8 {
    uint64_t value;
};
struct __attribute__((may_alias, aligned(16))) weft_bytes16 {
    uint64_t low, high;
};

#ifdef __CUDACC_RTC__ /* has the keyword without underscores alone */
#define __asm__ asm
#endif

#ifdef __CUDACC__
#define WEFT_DEVICE static __device__ __forceinline__
#elif defined(__NVPTX__)
#define WEFT_DEVICE static inline __attribute__((always_inline, unused))
#else
#define WEFT_DEVICE static inline __attribute__((unused))
#endif

/* Whoever pretends a GPU on a host names the file that has the rest: WEFT_DEVICE_HOST. */
#if defined(__CUDACC__) || defined(__NVPTX__)

/* The architecture that is compiled for, as 10 times the number of its SM. Clang without CUDA is
 * told it. */
#ifdef __CUDA_ARCH__
#define WEFT_DEVICE_ARCH __CUDA_ARCH__
#elif !defined(WEFT_DEVICE_ARCH)
#define WEFT_DEVICE_ARCH 800
#endif

#define WEFT_UNLIKELY(condition) __builtin_expect(!!(condition), 0)
#define WEFT_UNROLL              _Pragma("unroll")
#define WEFT_ROLLED              _Pragma("unroll 1")
/* The compiler forgets where a variable of 64 bits has its value from: what is made of it is
 * made here, and not ahead of a loop, where it would take registers for all of that loop. */
#define WEFT_FORGET(variable) __asm__ volatile("" : "+l"(variable))

/* --- Loads and stores: weft_<instruction>_<order>_<scope>_<type> ---------------------------------
 * The scope is sys, or gpu for words that kernels of one GPU tell each other. */

#define WEFT_PTX_LOAD(order, scope, bits, letter)                                                \
    WEFT_DEVICE uint##bits##_t weft_ld_##order##_##scope##_u##bits(const uint##bits##_t *word) { \
        uint##bits##_t value;                                                                    \
        __asm__ volatile("ld." #order "." #scope ".global.u" #bits " %0, [%1];"                  \
                         : "=" letter(value)                                                     \
                         : "l"(word)                                                             \
                         : "memory");                                                            \
        return value;                                                                            \
    }
#define WEFT_PTX_STORE(order, scope, bits, letter)                               \
    WEFT_DEVICE void weft_st_##order##_##scope##_u##bits(uint##bits##_t *word,   \
                                                         uint##bits##_t value) { \
        __asm__ volatile("st." #order "." #scope ".global.u" #bits " [%0], %1;"  \
                         :                                                       \
                         : "l"(word), letter(value)                              \
                         : "memory");                                            \
    }
WEFT_PTX_LOAD(relaxed, sys, 32, "r")
WEFT_PTX_LOAD(relaxed, sys, 64, "l")
WEFT_PTX_LOAD(acquire, sys, 32, "r")
WEFT_PTX_LOAD(acquire, sys, 64, "l")
WEFT_PTX_LOAD(acquire, gpu, 64, "l")
WEFT_PTX_STORE(relaxed, sys, 32, "r")
WEFT_PTX_STORE(relaxed, sys, 64, "l")
WEFT_PTX_STORE(release, sys, 32, "r")
WEFT_PTX_STORE(release, sys, 64, "l")
WEFT_PTX_STORE(release, gpu, 64, "l")
#undef WEFT_PTX_LOAD
#undef WEFT_PTX_STORE

WEFT_DEVICE struct weft_quad weft_ld_relaxed_sys_quad(const struct weft_quad *quad) {
    struct weft_quad value;
    __asm__ volatile("ld.relaxed.sys.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(value.a), "=r"(value.b), "=r"(value.c), "=r"(value.d)
                     : "l"(quad)
                     : "memory");
    return value;
}
WEFT_DEVICE void weft_st_relaxed_sys_quad(struct weft_quad *quad, struct weft_quad value) {
    __asm__ volatile("st.relaxed.sys.global.v4.u32 [%0], {%1, %2, %3, %4};"
                     :
                     : "l"(quad), "r"(value.a), "r"(value.b), "r"(value.c), "r"(value.d)
                     : "memory");
}

/* Accesses in no order, of what peers write or read: data behind a flag. They may be torn, unless
 * they are aligned and of 8 bytes or fewer. */
#define WEFT_WEAK(bytes)                                                         \
    WEFT_DEVICE struct weft_bytes##bytes weft_ld_weak_bytes##bytes(              \
        const struct weft_bytes##bytes *from) {                                  \
        return *from;                                                            \
    }                                                                            \
    WEFT_DEVICE void weft_st_weak_bytes##bytes(struct weft_bytes##bytes *to,     \
                                               struct weft_bytes##bytes value) { \
        *to = value;                                                             \
    }
WEFT_WEAK(1)
WEFT_WEAK(2)
WEFT_WEAK(4)
WEFT_WEAK(8)
WEFT_WEAK(16)
#undef WEFT_WEAK

/* --- Atomics: red has no result, atom's is the word before. Those that say so order nothing
 * -------
 */

#define WEFT_PTX_RED(name, order, operation, bits, letter)                                       \
    WEFT_DEVICE void weft_red_##name##_sys_u##bits(uint##bits##_t *word, uint##bits##_t value) { \
        __asm__ volatile("red." order ".sys.global." operation #bits " [%0], %1;"                \
                         :                                                                       \
                         : "l"(word), letter(value)                                              \
                         : "memory");                                                            \
    }
#define WEFT_PTX_ATOM_IN(scope, name, order, operation, bits, letter)                         \
    WEFT_DEVICE uint##bits##_t weft_atom_##name##_##scope##_u##bits(uint##bits##_t *word,     \
                                                                    uint##bits##_t value) {   \
        uint##bits##_t before;                                                                \
        __asm__ volatile("atom." order "." #scope ".global." operation #bits " %0, [%1], %2;" \
                         : "=" letter(before)                                                 \
                         : "l"(word), letter(value)                                           \
                         : "memory");                                                         \
        return before;                                                                        \
    }
#define WEFT_PTX_ATOM(name, order, operation, bits, letter) \
    WEFT_PTX_ATOM_IN(sys, name, order, operation, bits, letter)
#define WEFT_PTX_CAS(name, order, bits, letter)                                       \
    WEFT_DEVICE uint##bits##_t weft_atom_##name##_sys_u##bits(                        \
        uint##bits##_t *word, uint##bits##_t cond, uint##bits##_t value) {            \
        uint##bits##_t before;                                                        \
        __asm__ volatile("atom." order ".sys.global.cas.b" #bits " %0, [%1], %2, %3;" \
                         : "=" letter(before)                                         \
                         : "l"(word), letter(cond), letter(value)                     \
                         : "memory");                                                 \
        return before;                                                                \
    }
#define WEFT_PTX_ATOMICS(bits, letter)                             \
    WEFT_PTX_RED(add, "release", "add.u", bits, letter)            \
    WEFT_PTX_RED(add_relaxed, "relaxed", "add.u", bits, letter)    \
    WEFT_PTX_RED(and_relaxed, "relaxed", "and.b", bits, letter)    \
    WEFT_PTX_RED(or_relaxed, "relaxed", "or.b", bits, letter)      \
    WEFT_PTX_RED(xor_relaxed, "relaxed", "xor.b", bits, letter)    \
    WEFT_PTX_ATOM(add, "acq_rel", "add.u", bits, letter)           \
    WEFT_PTX_ATOM(and, "acq_rel", "and.b", bits, letter)           \
    WEFT_PTX_ATOM(or, "acq_rel", "or.b", bits, letter)             \
    WEFT_PTX_ATOM(xor, "acq_rel", "xor.b", bits, letter)           \
    WEFT_PTX_ATOM(exch, "acq_rel", "exch.b", bits, letter)         \
    WEFT_PTX_ATOM(add_relaxed, "relaxed", "add.u", bits, letter)   \
    WEFT_PTX_ATOM(and_relaxed, "relaxed", "and.b", bits, letter)   \
    WEFT_PTX_ATOM(or_relaxed, "relaxed", "or.b", bits, letter)     \
    WEFT_PTX_ATOM(xor_relaxed, "relaxed", "xor.b", bits, letter)   \
    WEFT_PTX_ATOM(exch_relaxed, "relaxed", "exch.b", bits, letter) \
    WEFT_PTX_CAS(cas, "acq_rel", bits, letter)                     \
    WEFT_PTX_CAS(cas_relaxed, "relaxed", bits, letter)
WEFT_PTX_ATOMICS(32, "r")
WEFT_PTX_ATOMICS(64, "l")
WEFT_PTX_ATOM_IN(gpu, add, "acq_rel", "add.u", 64, "l")
WEFT_PTX_CAS(cas_acquire, "acquire", 32, "r")
WEFT_PTX_CAS(cas_release, "release", 32, "r")
#undef WEFT_PTX_RED
#undef WEFT_PTX_ATOM
#undef WEFT_PTX_ATOM_IN
#undef WEFT_PTX_CAS
#undef WEFT_PTX_ATOMICS

/* --- Order, time, the end ------------------------------------------------------------------------
 */

WEFT_DEVICE void weft_fence_sys(void) {
    __asm__ volatile("fence.acq_rel.sys;" ::: "memory");
}

/* Nothing behind it begins before the value is there, as when an atomic has come back. That a
 * branch sees to; the way that it does not take is no less right. */
WEFT_DEVICE void weft_await_u64(uint64_t value) {
    if (WEFT_UNLIKELY(value == 0x5aa5c33c0ff0d22d))
        weft_fence_sys();
}
WEFT_DEVICE void weft_await_u32(uint32_t value) {
    if (WEFT_UNLIKELY(value == 0x5aa5c33c))
        weft_fence_sys();
}

/* A fence that acquires and does not release, and so waits for no store: where there is one. */
#if WEFT_DEVICE_ARCH >= 900 && defined(__CUDACC_VER_MAJOR__) && !defined(__CUDA__)
#if __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ >= 1208
#define WEFT_FENCE_ACQUIRE
WEFT_DEVICE void weft_fence_acquire_sys(void) {
    __asm__ volatile("fence.acquire.sys;" ::: "memory");
}
#endif
#endif

/* Nanoseconds, in steps of up to 1 us. */
WEFT_DEVICE uint64_t weft_globaltimer(void) {
    uint64_t now;
    __asm__ volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

/* Lets others have the processor: nothing to do for a GPU. */
WEFT_DEVICE void weft_spin_yield(void) {}

/* Rests for so long, or up to twice as long; a millisecond at most. */
WEFT_DEVICE void weft_nanosleep(uint32_t ns) {
    __asm__ volatile("nanosleep.u32 %0;" ::"r"(ns));
}

/* A word for the threads of a warp that are here together, loaded by one of them: in memory of the
 * host each load goes over the bus, some tens a microsecond. */
WEFT_DEVICE uint32_t weft_warp_ld_relaxed_sys_u32(const uint32_t *word) {
    uint32_t together, lane, last, value = 0;
    __asm__ volatile("activemask.b32 %0;" : "=r"(together));
    __asm__("mov.u32 %0, %%laneid;" : "=r"(lane));
    __asm__("bfind.u32 %0, %1;" : "=r"(last) : "r"(together));
    if (lane == last)
        value = weft_ld_relaxed_sys_u32(word);
    __asm__ volatile("shfl.sync.idx.b32 %0, %0, %1, 31, %2;"
                     : "+r"(value)
                     : "r"(last), "r"(together)
                     : "memory");
    return value;
}

WEFT_DEVICE void weft_trap(void) {
    __asm__ volatile("trap;");
}

/* --- The block -----------------------------------------------------------------------------------
 */

#ifdef __CUDACC__
/* An array of a block's own, in a kernel: as __shared__ type name[count]. */
#define WEFT_SHARED(type, name, count) __shared__ type name[count]
#define WEFT_SPECIAL(function, builtin, reg)     \
    WEFT_DEVICE uint32_t weft_##function(void) { \
        return builtin;                          \
    }
#else
#define WEFT_SPECIAL(function, builtin, reg)             \
    WEFT_DEVICE uint32_t weft_##function(void) {         \
        uint32_t value;                                  \
        __asm__("mov.u32 %0, %%" reg ";" : "=r"(value)); \
        return value;                                    \
    }
#endif
WEFT_SPECIAL(block_index, blockIdx.x, "ctaid.x")
WEFT_SPECIAL(block_count, gridDim.x, "nctaid.x")
WEFT_SPECIAL(block_thread, threadIdx.x, "tid.x")
WEFT_SPECIAL(block_threads, blockDim.x, "ntid.x")
WEFT_SPECIAL(block_thread_y, threadIdx.y, "tid.y")
WEFT_SPECIAL(block_thread_z, threadIdx.z, "tid.z")
WEFT_SPECIAL(block_threads_y, blockDim.y, "ntid.y")
WEFT_SPECIAL(block_threads_z, blockDim.z, "ntid.z")
WEFT_SPECIAL(block_index_y, blockIdx.y, "ctaid.y")
WEFT_SPECIAL(block_index_z, blockIdx.z, "ctaid.z")
WEFT_SPECIAL(block_count_y, gridDim.y, "nctaid.y")
WEFT_SPECIAL(block_count_z, gridDim.z, "nctaid.z")
#undef WEFT_SPECIAL

WEFT_DEVICE void weft_block_sync(void) {
#ifdef __CUDACC__
    __syncthreads();
#else
    __asm__ volatile("bar.sync 0;" ::: "memory");
#endif
}

/* The same; tells all threads whether one of them has brought anything but 0. */
WEFT_DEVICE uint32_t weft_block_sync_any(uint32_t mine) {
#ifdef __CUDACC__
    return (uint32_t)__syncthreads_or((int)mine);
#else
    uint32_t any;
    __asm__ volatile("{ .reg .pred %%p1, %%p2; setp.ne.u32 %%p1, %1, 0;\n\t"
                     "barrier.red.or.pred %%p2, 0, %%p1; selp.u32 %0, 1, 0, %%p2; }"
                     : "=r"(any)
                     : "r"(mine)
                     : "memory");
    return any;
#endif
}

/* --- The warp: whole ones, or all of what a block's last warp has --------------------------------
 */

enum { WEFT_WARP_LANES = 32 };

WEFT_DEVICE uint32_t weft_lane(void) {
    uint32_t lane;
    __asm__("mov.u32 %0, %%laneid;" : "=r"(lane));
    return lane;
}

/* What each lane has done before is seen by all behind it. */
WEFT_DEVICE void weft_warp_sync(void) {
    __asm__ volatile("bar.warp.sync 0xffffffff;" ::: "memory");
}

/* The same; tells all lanes whether one of them has brought anything but 0. */
WEFT_DEVICE uint32_t weft_warp_sync_any(uint32_t mine) {
    uint32_t any;
    __asm__ volatile("{ .reg .pred %%p1, %%p2; setp.ne.u32 %%p1, %1, 0;\n\t"
                     "vote.sync.any.pred %%p2, %%p1, 0xffffffff; selp.u32 %0, 1, 0, %%p2; }"
                     : "=r"(any)
                     : "r"(mine)
                     : "memory");
    weft_warp_sync();
    return any;
}

/* The value of one lane, for all. No order of memory. */
WEFT_DEVICE uint32_t weft_warp_broadcast_u32(uint32_t value, uint32_t lane) {
    __asm__ volatile("shfl.sync.idx.b32 %0, %0, %1, 31, 0xffffffff;"
                     : "+r"(value)
                     : "r"(lane)
                     : "memory");
    return value;
}

/* --- Dependent launches: nothing before sm_90, where kernels run one behind the other ------------
 */

/* Until the kernels that this one depends on have ended, and what they stored is seen. */
WEFT_DEVICE void weft_dependency_wait(void) {
#if WEFT_DEVICE_ARCH >= 900
    __asm__ volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/* Kernels that depend on this one may start when all of its blocks have come here, or ended. */
WEFT_DEVICE void weft_dependency_trigger(void) {
#if WEFT_DEVICE_ARCH >= 900
    __asm__ volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

#elif defined(WEFT_DEVICE_HOST)
#include WEFT_DEVICE_HOST
#endif

#endif
