/* SPDX-License-Identifier: BSD-3-Clause */
/* What kernels do in one instruction of PTX, a function each: loads, stores and atomics in the
 * scope of the whole system, fences, the time, and which thread this is.
 *
 * The file is C, and C++ of CUDA as well: a clang without CUDA compiles it for nvptx64. Names end
 * in what they are about: _u32, _u64 or _quad. */
#ifndef WEFT_BASE_DEVICE_CUH
#define WEFT_BASE_DEVICE_CUH

#include <stddef.h>
#include <stdint.h>

/* 16 bytes that are loaded and stored by one instruction; each half of them is never torn. */
struct __attribute__((aligned(16))) weft_quad {
    uint32_t a, b, c, d;
};

#ifdef __CUDACC__
#define WEFT_DEVICE static __device__ __forceinline__
#else
#define WEFT_DEVICE static inline __attribute__((unused))
#endif

#if defined(__CUDACC__) || defined(__NVPTX__) /* else base/gpu_host.cuh has them */

#define WEFT_UNROLL _Pragma("unroll")
#define WEFT_ROLLED _Pragma("unroll 1")

/* --- Loads and stores: weft_<instruction>_<order>_sys_<type> -------------------------------------
 */

#define WEFT_PTX_LOAD(order, bits, letter)                                                 \
    WEFT_DEVICE uint##bits##_t weft_ld_##order##_sys_u##bits(const uint##bits##_t *word) { \
        uint##bits##_t value;                                                              \
        __asm__ volatile("ld." #order ".sys.global.u" #bits " %0, [%1];"                   \
                         : "=" letter(value)                                               \
                         : "l"(word)                                                       \
                         : "memory");                                                      \
        return value;                                                                      \
    }
#define WEFT_PTX_STORE(order, bits, letter)                                                      \
    WEFT_DEVICE void weft_st_##order##_sys_u##bits(uint##bits##_t *word, uint##bits##_t value) { \
        __asm__ volatile("st." #order ".sys.global.u" #bits " [%0], %1;"                         \
                         :                                                                       \
                         : "l"(word), letter(value)                                              \
                         : "memory");                                                            \
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

/* --- Atomics: red has no result, atom's is the word before ---------------------------------------
 */

#define WEFT_PTX_RED(operation, type, bits, letter)                                        \
    WEFT_DEVICE void weft_red_##operation##_sys_u##bits(uint##bits##_t *word,              \
                                                        uint##bits##_t value) {            \
        __asm__ volatile("red.release.sys.global." #operation "." #type #bits " [%0], %1;" \
                         :                                                                 \
                         : "l"(word), letter(value)                                        \
                         : "memory");                                                      \
    }
#define WEFT_PTX_ATOM(operation, type, bits, letter)                                            \
    WEFT_DEVICE uint##bits##_t weft_atom_##operation##_sys_u##bits(uint##bits##_t *word,        \
                                                                   uint##bits##_t value) {      \
        uint##bits##_t before;                                                                  \
        __asm__ volatile("atom.acq_rel.sys.global." #operation "." #type #bits " %0, [%1], %2;" \
                         : "=" letter(before)                                                   \
                         : "l"(word), letter(value)                                             \
                         : "memory");                                                           \
        return before;                                                                          \
    }
#define WEFT_PTX_CAS(name, order, bits, letter)                                       \
    WEFT_DEVICE uint##bits##_t weft_atom_cas##name##_sys_u##bits(                     \
        uint##bits##_t *word, uint##bits##_t cond, uint##bits##_t value) {            \
        uint##bits##_t before;                                                        \
        __asm__ volatile("atom." order ".sys.global.cas.b" #bits " %0, [%1], %2, %3;" \
                         : "=" letter(before)                                         \
                         : "l"(word), letter(cond), letter(value)                     \
                         : "memory");                                                 \
        return before;                                                                \
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
    __asm__ volatile("fence.acq_rel.sys;" ::: "memory");
}

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
#undef WEFT_SPECIAL

WEFT_DEVICE void weft_block_sync(void) {
#ifdef __CUDACC__
    __syncthreads();
#else
    __asm__ volatile("bar.sync 0;" ::: "memory");
#endif
}

/* Barriers of some of a block's threads, in whole warps: number 1 to 15, of so many. Who arrives
 * goes on; who syncs waits until as many have done the one or the other. */
WEFT_DEVICE void weft_barrier_sync(uint32_t barrier, uint32_t threads) {
    __asm__ volatile("barrier.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}
WEFT_DEVICE void weft_barrier_arrive(uint32_t barrier, uint32_t threads) {
    __asm__ volatile("barrier.arrive %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
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

#endif

#endif
