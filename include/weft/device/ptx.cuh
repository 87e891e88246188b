/* SPDX-License-Identifier: BSD-3-Clause */
/* Single PTX instructions, one in each function: loads, stores and atomics (mostly with system
 * scope), fences, the time, and the thread's indices. The other parts of <weft/device.cuh> are
 * built on these; a kernel may call them, too.
 *
 * The file is C, and C++ of CUDA as well: a clang without CUDA compiles it for nvptx64. A name ends
 * in its operand type: _u32, _u64, _quad, or _bytes1 to _bytes16. */
#ifndef WEFT_DEVICE_PTX_CUH
#define WEFT_DEVICE_PTX_CUH

#include "weft/addr.h"

/* 16 bytes that one instruction loads or stores; each half is never torn. */
struct __attribute__((aligned(16))) weft_quad {
    uint32_t a, b, c, d;
};

/* Types of the sizes that one instruction moves; they may alias any object. The largest is aligned,
 * because compilers would otherwise use two instructions. */
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

#ifdef __CUDACC_RTC__ /* only has the keyword without underscores */
#define __asm__ asm
#endif

#ifdef __CUDACC__
#define WEFT_DEVICE static __device__ __forceinline__
#elif defined(__NVPTX__)
#define WEFT_DEVICE static inline __attribute__((always_inline, unused))
#else
#define WEFT_DEVICE static inline __attribute__((unused))
#endif

/* If a host emulates a GPU, the file that WEFT_DEVICE_HOST names defines what follows. */
#if defined(__CUDACC__) || defined(__NVPTX__)

/* The target architecture: 10 times its SM version. For clang without CUDA the caller defines it.
 */
#ifdef __CUDA_ARCH__
#define WEFT_DEVICE_ARCH __CUDA_ARCH__
#elif !defined(WEFT_DEVICE_ARCH)
#define WEFT_DEVICE_ARCH 800
#endif

#define WEFT_UNLIKELY(condition) __builtin_expect(!!(condition), 0)
#define WEFT_UNROLL              _Pragma("unroll")
#define WEFT_ROLLED              _Pragma("unroll 1")
/* Makes the compiler forget how a 64-bit variable was computed, so that it computes values derived
 * from it here, not ahead of a loop, where they would take registers for the whole loop. */
#define WEFT_FORGET(variable) __asm__ volatile("" : "+l"(variable))

/* --- Loads and stores: weft_<instruction>_<order>_<scope>_<type> ------------------------------
 *
 * The scope is sys, or gpu for words that only kernels of one GPU share. */

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

/* Unordered accesses to data that peers write or read, protected by a flag. They may be torn unless
 * they are aligned and at most 8 bytes. */
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

/* --- Atomics: red returns nothing, atom the old value. "relaxed" atomics order nothing -------- */

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

/* --- Order, time, the end --------------------------------------------------------------------- */

WEFT_DEVICE void weft_fence_sys(void) {
    __asm__ volatile("fence.acq_rel.sys;" ::: "memory");
}

/* Delays the instructions after it until the value is there, for example until an atomic has
 * returned. A branch on the value achieves that; both its paths are correct. */
WEFT_DEVICE void weft_await_u64(uint64_t value) {
    if (WEFT_UNLIKELY(value == 0x5aa5c33c0ff0d22d))
        weft_fence_sys();
}
WEFT_DEVICE void weft_await_u32(uint32_t value) {
    if (WEFT_UNLIKELY(value == 0x5aa5c33c))
        weft_fence_sys();
}

/* A fence that only acquires, and so waits for no store; defined if the target has one. */
#if WEFT_DEVICE_ARCH >= 900 && defined(__CUDACC_VER_MAJOR__) && !defined(__CUDA__)
#if __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ >= 1208
#define WEFT_FENCE_ACQUIRE
WEFT_DEVICE void weft_fence_acquire_sys(void) {
    __asm__ volatile("fence.acquire.sys;" ::: "memory");
}
#endif
#endif

/* Returns the time in nanoseconds, in steps of up to 1 us. */
WEFT_DEVICE uint64_t weft_globaltimer(void) {
    uint64_t now;
    __asm__ volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

/* Yields the processor; a GPU has nothing to do. */
WEFT_DEVICE void weft_spin_yield(void) {}

/* Pauses for `ns` nanoseconds to twice as long; at most a millisecond. */
WEFT_DEVICE void weft_nanosleep(uint32_t ns) {
    __asm__ volatile("nanosleep.u32 %0;" ::"r"(ns));
}

/* Loads a word once for the active threads of a warp. Each load from host memory uses the bus,
 * which carries a few dozen a microsecond. */
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

/* --- The block -------------------------------------------------------------------------------- */

#ifdef __CUDACC__
/* A shared array of the block, in a kernel: __shared__ type name[count]. */
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

/* Syncs the block, and returns non-zero in all threads if one passed non-zero. */
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

/* --- The warp: all of its lanes that exist ---------------------------------------------------- */

enum { WEFT_WARP_LANES = 32 };

WEFT_DEVICE uint32_t weft_lane(void) {
    uint32_t lane;
    __asm__("mov.u32 %0, %%laneid;" : "=r"(lane));
    return lane;
}

/* Syncs the warp: afterwards all lanes see what each lane has done before. */
WEFT_DEVICE void weft_warp_sync(void) {
    __asm__ volatile("bar.warp.sync 0xffffffff;" ::: "memory");
}

/* Syncs the warp, and returns non-zero in all lanes if one passed non-zero. */
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

/* Returns the value of one lane to all lanes. It does not order memory. */
WEFT_DEVICE uint32_t weft_warp_broadcast_u32(uint32_t value, uint32_t lane) {
    __asm__ volatile("shfl.sync.idx.b32 %0, %0, %1, 31, 0xffffffff;"
                     : "+r"(value)
                     : "r"(lane)
                     : "memory");
    return value;
}

/* --- Dependent launches: no effect before sm_90, where kernels run one after the other -------- */

/* Waits until the kernels on which this kernel depends have ended and their stores are visible. */
WEFT_DEVICE void weft_dependency_wait(void) {
#if WEFT_DEVICE_ARCH >= 900
    __asm__ volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/* Lets dependent kernels start when all blocks of this kernel have called it or ended. */
WEFT_DEVICE void weft_dependency_trigger(void) {
#if WEFT_DEVICE_ARCH >= 900
    __asm__ volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

#elif defined(WEFT_DEVICE_HOST)
#include WEFT_DEVICE_HOST
#endif

#endif
