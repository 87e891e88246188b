/* SPDX-License-Identifier: BSD-3-Clause */
/* Puts and gets by NVSHMEM's names, by a thread, warp or block of a kernel, or by the host.
 *
 * Calls by a warp or block sync at both ends: earlier stores of its threads are sent, and any of
 * its threads may give a signal afterwards. The _nbi calls, which do not block in NVSHMEM, are the
 * same as the blocking calls here. */
#ifndef WEFT_NVSHMEM_COPY_CUH
#define WEFT_NVSHMEM_COPY_CUH

#include "weft/nvshmem/device/state.cuh"

/* --- Bytes ------------------------------------------------------------------------------------ */

WEFT_NVSHMEM_BOTH void weft_nvshmem_put(void *dest, const void *source, size_t bytes, int pe) {
#if WEFT_NVSHMEM_ON_GPU
    weft_put_t(WEFT_NVSHMEM_WORLD, dest, source, bytes, pe);
#else
    shmem_putmem(dest, source, bytes, pe);
#endif
}

WEFT_NVSHMEM_BOTH void weft_nvshmem_get(void *dest, const void *source, size_t bytes, int pe) {
#if WEFT_NVSHMEM_ON_GPU
    weft_get_t(WEFT_NVSHMEM_WORLD, dest, source, bytes, pe);
#else
    shmem_getmem(dest, source, bytes, pe);
#endif
}

#ifdef WEFT_NVSHMEM_KERNEL
/* Load and store one element in any memory, as bits: words of 4 and 8 bytes are never torn, and may
 * be polled. */
WEFT_DEVICE uint64_t weft_nvshmem_load(const void *from, size_t bytes) {
    return bytes == 8   ? weft_ld_relaxed_sys_u64((const uint64_t *)from)
           : bytes == 4 ? weft_ld_relaxed_sys_u32((const uint32_t *)from)
                        : weft_copy_load((const char *)from, (uint32_t)bytes);
}

WEFT_DEVICE void weft_nvshmem_store(void *to, size_t bytes, uint64_t bits) {
    if (bytes == 8)
        weft_st_relaxed_sys_u64((uint64_t *)to, bits);
    else if (bytes == 4)
        weft_st_relaxed_sys_u32((uint32_t *)to, (uint32_t)bits);
    else
        weft_copy_store((char *)to, (uint32_t)bytes, bits);
}
#endif

WEFT_NVSHMEM_BOTH void weft_nvshmem_p(void *dest, const void *value, size_t bytes, int pe) {
#if WEFT_NVSHMEM_ON_GPU
    weft_nvshmem_store(weft_at(WEFT_NVSHMEM_WORLD, dest, pe), bytes,
                       weft_nvshmem_bits(value, bytes));
#else
    shmem_putmem(dest, value, bytes, pe);
#endif
}

WEFT_NVSHMEM_BOTH void weft_nvshmem_g(void *value, const void *source, size_t bytes, int pe) {
#if WEFT_NVSHMEM_ON_GPU
    const void *from = weft_at(WEFT_NVSHMEM_WORLD, source, pe);
    weft_nvshmem_set_bits(value, bytes, weft_nvshmem_load(from, bytes));
#else
    shmem_getmem(value, source, bytes, pe);
#endif
}

#ifdef WEFT_NVSHMEM_KERNEL
#define WEFT_NVSHMEM_GROUP_COPIES(group, letter)                                             \
    WEFT_DEVICE void weft_nvshmem_put_##letter(void *dest, const void *source, size_t bytes, \
                                               int pe) {                                     \
        weft_##group##_sync();                                                               \
        weft_put_##letter(WEFT_NVSHMEM_WORLD, dest, source, bytes, pe);                      \
        weft_##group##_sync();                                                               \
    }                                                                                        \
    WEFT_DEVICE void weft_nvshmem_get_##letter(void *dest, const void *source, size_t bytes, \
                                               int pe) {                                     \
        weft_##group##_sync();                                                               \
        weft_get_##letter(WEFT_NVSHMEM_WORLD, dest, source, bytes, pe);                      \
        weft_##group##_sync();                                                               \
    }
WEFT_NVSHMEM_GROUP_COPIES(warp, w)
WEFT_NVSHMEM_GROUP_COPIES(block, b)
#undef WEFT_NVSHMEM_GROUP_COPIES
#endif

/* --- Elements --------------------------------------------------------------------------------- */

#define WEFT_NVSHMEM_ELEMENTS(N, T, _)                                       \
    WEFT_NVSHMEM_BOTH void nvshmem_##N##_p(T *dest, const T value, int pe) { \
        weft_nvshmem_p(dest, &value, sizeof value, pe);                      \
    }                                                                        \
    WEFT_NVSHMEM_BOTH T nvshmem_##N##_g(const T *source, int pe) {           \
        T value;                                                             \
        weft_nvshmem_g(&value, source, sizeof value, pe);                    \
        return value;                                                        \
    }
WEFT_NVSHMEM_RMA_TYPES(WEFT_NVSHMEM_ELEMENTS, _)
#undef WEFT_NVSHMEM_ELEMENTS

/* --- Arrays of bytes, of elements of a type, and of elements of a number of bits -------------- */

#define WEFT_NVSHMEM_COPY(HOW, name, T, size, made)                  \
    HOW void name(T *dest, const T *source, size_t nelems, int pe) { \
        made(dest, source, nelems *(size), pe);                      \
    }
/* `put` and `get` are the beginnings of names: int_put of nvshmem_int_put_nbi. */
#define WEFT_NVSHMEM_COPIES_BY_ONE(put, get, T, size)                                    \
    WEFT_NVSHMEM_COPY(WEFT_NVSHMEM_BOTH, nvshmem_##put, T, size, weft_nvshmem_put)       \
    WEFT_NVSHMEM_COPY(WEFT_NVSHMEM_BOTH, nvshmem_##get, T, size, weft_nvshmem_get)       \
    WEFT_NVSHMEM_COPY(WEFT_NVSHMEM_BOTH, nvshmem_##put##_nbi, T, size, weft_nvshmem_put) \
    WEFT_NVSHMEM_COPY(WEFT_NVSHMEM_BOTH, nvshmem_##get##_nbi, T, size, weft_nvshmem_get)
#ifdef WEFT_NVSHMEM_KERNEL
#define WEFT_NVSHMEM_COPIES_BY(put, get, T, size, group, letter)                                 \
    WEFT_NVSHMEM_COPY(WEFT_DEVICE, nvshmemx_##put##_##group, T, size, weft_nvshmem_put_##letter) \
    WEFT_NVSHMEM_COPY(WEFT_DEVICE, nvshmemx_##get##_##group, T, size, weft_nvshmem_get_##letter) \
    WEFT_NVSHMEM_COPY(WEFT_DEVICE, nvshmemx_##put##_nbi_##group, T, size,                        \
                      weft_nvshmem_put_##letter)                                                 \
    WEFT_NVSHMEM_COPY(WEFT_DEVICE, nvshmemx_##get##_nbi_##group, T, size, weft_nvshmem_get_##letter)
#else
#define WEFT_NVSHMEM_COPIES_BY(put, get, T, size, group, letter)
#endif
#define WEFT_NVSHMEM_COPIES(put, get, T, size)         \
    WEFT_NVSHMEM_COPIES_BY_ONE(put, get, T, size)      \
    WEFT_NVSHMEM_COPIES_BY(put, get, T, size, warp, w) \
    WEFT_NVSHMEM_COPIES_BY(put, get, T, size, block, b)
#define WEFT_NVSHMEM_COPIES_OF_TYPE(N, T, _) WEFT_NVSHMEM_COPIES(N##_put, N##_get, T, sizeof(T))
#define WEFT_NVSHMEM_COPIES_OF_SIZE(bits, size, _) \
    WEFT_NVSHMEM_COPIES(put##bits, get##bits, void, size)
WEFT_NVSHMEM_COPIES(putmem, getmem, void, 1)
WEFT_NVSHMEM_RMA_TYPES(WEFT_NVSHMEM_COPIES_OF_TYPE, _)
SHMEM_SIZES(WEFT_NVSHMEM_COPIES_OF_SIZE, _)
#undef WEFT_NVSHMEM_COPIES_OF_SIZE
#undef WEFT_NVSHMEM_COPIES_OF_TYPE
#undef WEFT_NVSHMEM_COPIES
#undef WEFT_NVSHMEM_COPIES_BY
#undef WEFT_NVSHMEM_COPIES_BY_ONE
#undef WEFT_NVSHMEM_COPY

#endif
