/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernels' access to memory that other processes read and write: the functions of weft/device, or
 * those of base/gpu_host.cuh if there is no CUDA compiler, overloaded by the type of the word. */
#ifndef WEFT_BASE_GPU_CUH
#define WEFT_BASE_GPU_CUH

#ifndef WEFT_DEVICE_HOST
#define WEFT_DEVICE_HOST "base/gpu_host.cuh"
#endif
#include "weft/device.cuh"

#define WEFT_OVERLOAD_LOAD(order, T, suffix)             \
    WEFT_DEVICE T weft_ld_##order##_sys(const T *word) { \
        return weft_ld_##order##_sys_##suffix(word);     \
    }
#define WEFT_OVERLOAD_STORE(order, T, suffix)                  \
    WEFT_DEVICE void weft_st_##order##_sys(T *word, T value) { \
        weft_st_##order##_sys_##suffix(word, value);           \
    }
#define WEFT_OVERLOAD_ATOM(name, T, suffix)                  \
    WEFT_DEVICE T weft_atom_##name##_sys(T *word, T value) { \
        return weft_atom_##name##_sys_##suffix(word, value); \
    }
#define WEFT_OVERLOAD_CAS(name, T, suffix)                           \
    WEFT_DEVICE T weft_atom_##name##_sys(T *word, T cond, T value) { \
        return weft_atom_##name##_sys_##suffix(word, cond, value);   \
    }
#define WEFT_OVERLOADS(T, suffix)                         \
    WEFT_OVERLOAD_LOAD(relaxed, T, suffix)                \
    WEFT_OVERLOAD_LOAD(acquire, T, suffix)                \
    WEFT_OVERLOAD_STORE(relaxed, T, suffix)               \
    WEFT_OVERLOAD_STORE(release, T, suffix)               \
    WEFT_OVERLOAD_ATOM(add, T, suffix)                    \
    WEFT_OVERLOAD_ATOM(and, T, suffix)                    \
    WEFT_OVERLOAD_ATOM(or, T, suffix)                     \
    WEFT_OVERLOAD_ATOM(xor, T, suffix)                    \
    WEFT_OVERLOAD_ATOM(exch, T, suffix)                   \
    WEFT_OVERLOAD_CAS(cas, T, suffix)                     \
    WEFT_DEVICE void weft_red_add_sys(T *word, T value) { \
        weft_red_add_sys_##suffix(word, value);           \
    }
WEFT_OVERLOADS(uint32_t, u32)
WEFT_OVERLOADS(uint64_t, u64)
WEFT_OVERLOAD_LOAD(relaxed, struct weft_quad, quad)
WEFT_OVERLOAD_STORE(relaxed, struct weft_quad, quad)
WEFT_OVERLOAD_CAS(cas_acquire, uint32_t, u32)
WEFT_OVERLOAD_CAS(cas_release, uint32_t, u32)
#undef WEFT_OVERLOADS
#undef WEFT_OVERLOAD_LOAD
#undef WEFT_OVERLOAD_STORE
#undef WEFT_OVERLOAD_ATOM
#undef WEFT_OVERLOAD_CAS

/* Unordered accesses to data that a flag announces, which peers write or read. They may be torn. */
template <class T> WEFT_DEVICE T weft_ld_weak(const T *from) {
#ifdef __CUDACC__
    return *from;
#else
    return weft_host_load_weak(from);
#endif
}
template <class T> WEFT_DEVICE void weft_st_weak(T *to, T value) {
#ifdef __CUDACC__
    *to = value;
#else
    weft_host_store_weak(to, value);
#endif
}

/* Returns whether a word satisfies a comparison (SHMEM_CMP_*). */
#define WEFT_OVERLOAD_COMPARES(T, suffix)                      \
    WEFT_DEVICE bool weft_compares(int cmp, T word, T value) { \
        return weft_compares_##suffix(cmp, word, value);       \
    }
WEFT_OVERLOAD_COMPARES(uint32_t, u32)
WEFT_OVERLOAD_COMPARES(uint64_t, u64)
WEFT_OVERLOAD_COMPARES(int64_t, i64)
#undef WEFT_OVERLOAD_COMPARES

/* Return this thread's index, and the number of threads, over all blocks. */
WEFT_DEVICE size_t weft_thread_index(void) {
    return (size_t)weft_block_index() * weft_block_threads() + weft_block_thread();
}
WEFT_DEVICE size_t weft_thread_count(void) {
    return (size_t)weft_block_count() * weft_block_threads();
}

/* The threads that share a copy (weft/device/copy.cuh): those of all blocks, or of one. */
WEFT_DEVICE struct weft_thread_group weft_thread_group_all(void) {
    return {(uint32_t)weft_thread_index(), (uint32_t)weft_thread_count()};
}
WEFT_DEVICE struct weft_thread_group weft_thread_group_block(void) {
    return {weft_block_thread(), weft_block_threads()};
}

#endif
