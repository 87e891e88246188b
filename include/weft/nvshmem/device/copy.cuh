/* SPDX-License-Identifier: BSD-3-Clause */
/* Puts and gets by NVSHMEM's names, by a thread of a kernel, a warp or a block, or by the host.
 *
 * Those of a warp or block meet at both ends: what its threads have stored before is sent, and any
 * of them may give a signal behind. What is not blocking (_nbi) in NVSHMEM is here what is. */
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
/* One element anywhere, as bits: words of 4 and 8 bytes are never torn, and may be polled. */
WEFT_DEVICE uint64_t weft_nvshmem_load(const void *from, size_t bytes) {
    return bytes == 8   ? weft_ld_relaxed_sys_u64((const uint64_t *)from)
           : bytes == 4 ? weft_ld_relaxed_sys_u32((const uint32_t *)from)
           : bytes == 2 ? weft_ld_weak_bytes2((const struct weft_bytes2 *)from).value
                        : weft_ld_weak_bytes1((const struct weft_bytes1 *)from).value;
}

WEFT_DEVICE void weft_nvshmem_store(void *to, size_t bytes, uint64_t bits) {
    struct weft_bytes2 two = {(uint16_t)bits};
    struct weft_bytes1 one = {(uint8_t)bits};
    if (bytes == 8)
        weft_st_relaxed_sys_u64((uint64_t *)to, bits);
    else if (bytes == 4)
        weft_st_relaxed_sys_u32((uint32_t *)to, (uint32_t)bits);
    else if (bytes == 2)
        weft_st_weak_bytes2((struct weft_bytes2 *)to, two);
    else
        weft_st_weak_bytes1((struct weft_bytes1 *)to, one);
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

WEFT_NVSHMEM_BOTH void nvshmem_putmem(void *dest, const void *source, size_t bytes, int pe) {
    weft_nvshmem_put(dest, source, bytes, pe);
}
WEFT_NVSHMEM_BOTH void nvshmem_putmem_nbi(void *dest, const void *source, size_t bytes, int pe) {
    weft_nvshmem_put(dest, source, bytes, pe);
}
WEFT_NVSHMEM_BOTH void nvshmem_getmem(void *dest, const void *source, size_t bytes, int pe) {
    weft_nvshmem_get(dest, source, bytes, pe);
}
WEFT_NVSHMEM_BOTH void nvshmem_getmem_nbi(void *dest, const void *source, size_t bytes, int pe) {
    weft_nvshmem_get(dest, source, bytes, pe);
}

#ifdef WEFT_NVSHMEM_KERNEL
#define WEFT_NVSHMEM_GROUP_COPIES(group, letter)                                               \
    WEFT_DEVICE void weft_nvshmem_put_##letter(void *dest, const void *source, size_t bytes,   \
                                               int pe) {                                       \
        weft_##group##_sync();                                                                 \
        weft_put_##letter(WEFT_NVSHMEM_WORLD, dest, source, bytes, pe);                        \
        weft_##group##_sync();                                                                 \
    }                                                                                          \
    WEFT_DEVICE void weft_nvshmem_get_##letter(void *dest, const void *source, size_t bytes,   \
                                               int pe) {                                       \
        weft_##group##_sync();                                                                 \
        weft_get_##letter(WEFT_NVSHMEM_WORLD, dest, source, bytes, pe);                        \
        weft_##group##_sync();                                                                 \
    }                                                                                          \
    WEFT_DEVICE void nvshmemx_putmem_##group(void *dest, const void *source, size_t bytes,     \
                                             int pe) {                                         \
        weft_nvshmem_put_##letter(dest, source, bytes, pe);                                    \
    }                                                                                          \
    WEFT_DEVICE void nvshmemx_putmem_nbi_##group(void *dest, const void *source, size_t bytes, \
                                                 int pe) {                                     \
        weft_nvshmem_put_##letter(dest, source, bytes, pe);                                    \
    }                                                                                          \
    WEFT_DEVICE void nvshmemx_getmem_##group(void *dest, const void *source, size_t bytes,     \
                                             int pe) {                                         \
        weft_nvshmem_get_##letter(dest, source, bytes, pe);                                    \
    }                                                                                          \
    WEFT_DEVICE void nvshmemx_getmem_nbi_##group(void *dest, const void *source, size_t bytes, \
                                                 int pe) {                                     \
        weft_nvshmem_get_##letter(dest, source, bytes, pe);                                    \
    }
WEFT_NVSHMEM_GROUP_COPIES(warp, w)
WEFT_NVSHMEM_GROUP_COPIES(block, b)
#undef WEFT_NVSHMEM_GROUP_COPIES
#endif

/* --- Types ------------------------------------------------------------------------------------ */

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

/* `name` is that of a function without its type: nvshmem_int_put, nvshmemx_int_put_nbi_warp. */
#define WEFT_NVSHMEM_COPY(HOW, name, T, made)                        \
    HOW void name(T *dest, const T *source, size_t nelems, int pe) { \
        made(dest, source, nelems * sizeof(T), pe);                  \
    }
#define WEFT_NVSHMEM_COPIES(N, T, _)                                                 \
    WEFT_NVSHMEM_COPY(WEFT_NVSHMEM_BOTH, nvshmem_##N##_put, T, weft_nvshmem_put)     \
    WEFT_NVSHMEM_COPY(WEFT_NVSHMEM_BOTH, nvshmem_##N##_get, T, weft_nvshmem_get)     \
    WEFT_NVSHMEM_COPY(WEFT_NVSHMEM_BOTH, nvshmem_##N##_put_nbi, T, weft_nvshmem_put) \
    WEFT_NVSHMEM_COPY(WEFT_NVSHMEM_BOTH, nvshmem_##N##_get_nbi, T, weft_nvshmem_get)
WEFT_NVSHMEM_RMA_TYPES(WEFT_NVSHMEM_COPIES, _)
#undef WEFT_NVSHMEM_COPIES

#ifdef WEFT_NVSHMEM_KERNEL
#define WEFT_NVSHMEM_COPIES(N, T, _)                                                    \
    WEFT_NVSHMEM_COPY(WEFT_DEVICE, nvshmemx_##N##_put_warp, T, weft_nvshmem_put_w)      \
    WEFT_NVSHMEM_COPY(WEFT_DEVICE, nvshmemx_##N##_get_warp, T, weft_nvshmem_get_w)      \
    WEFT_NVSHMEM_COPY(WEFT_DEVICE, nvshmemx_##N##_put_nbi_warp, T, weft_nvshmem_put_w)  \
    WEFT_NVSHMEM_COPY(WEFT_DEVICE, nvshmemx_##N##_get_nbi_warp, T, weft_nvshmem_get_w)  \
    WEFT_NVSHMEM_COPY(WEFT_DEVICE, nvshmemx_##N##_put_block, T, weft_nvshmem_put_b)     \
    WEFT_NVSHMEM_COPY(WEFT_DEVICE, nvshmemx_##N##_get_block, T, weft_nvshmem_get_b)     \
    WEFT_NVSHMEM_COPY(WEFT_DEVICE, nvshmemx_##N##_put_nbi_block, T, weft_nvshmem_put_b) \
    WEFT_NVSHMEM_COPY(WEFT_DEVICE, nvshmemx_##N##_get_nbi_block, T, weft_nvshmem_get_b)
WEFT_NVSHMEM_RMA_TYPES(WEFT_NVSHMEM_COPIES, _)
#undef WEFT_NVSHMEM_COPIES
#endif
#undef WEFT_NVSHMEM_COPY

/* --- Sizes: nelems elements of so many bits ----------------------------------------------------
 */

#define WEFT_NVSHMEM_COPY(HOW, name, bytes, made)                          \
    HOW void name(void *dest, const void *source, size_t nelems, int pe) { \
        made(dest, source, nelems *(bytes), pe);                           \
    }
#define WEFT_NVSHMEM_COPIES(bits, bytes, _)                                                \
    WEFT_NVSHMEM_COPY(WEFT_NVSHMEM_BOTH, nvshmem_put##bits, bytes, weft_nvshmem_put)       \
    WEFT_NVSHMEM_COPY(WEFT_NVSHMEM_BOTH, nvshmem_get##bits, bytes, weft_nvshmem_get)       \
    WEFT_NVSHMEM_COPY(WEFT_NVSHMEM_BOTH, nvshmem_put##bits##_nbi, bytes, weft_nvshmem_put) \
    WEFT_NVSHMEM_COPY(WEFT_NVSHMEM_BOTH, nvshmem_get##bits##_nbi, bytes, weft_nvshmem_get)
SHMEM_SIZES(WEFT_NVSHMEM_COPIES, _)
#undef WEFT_NVSHMEM_COPIES
#ifdef WEFT_NVSHMEM_KERNEL
#define WEFT_NVSHMEM_COPIES(bits, bytes, _)                                                   \
    WEFT_NVSHMEM_COPY(WEFT_DEVICE, nvshmemx_put##bits##_warp, bytes, weft_nvshmem_put_w)      \
    WEFT_NVSHMEM_COPY(WEFT_DEVICE, nvshmemx_get##bits##_warp, bytes, weft_nvshmem_get_w)      \
    WEFT_NVSHMEM_COPY(WEFT_DEVICE, nvshmemx_put##bits##_nbi_warp, bytes, weft_nvshmem_put_w)  \
    WEFT_NVSHMEM_COPY(WEFT_DEVICE, nvshmemx_get##bits##_nbi_warp, bytes, weft_nvshmem_get_w)  \
    WEFT_NVSHMEM_COPY(WEFT_DEVICE, nvshmemx_put##bits##_block, bytes, weft_nvshmem_put_b)     \
    WEFT_NVSHMEM_COPY(WEFT_DEVICE, nvshmemx_get##bits##_block, bytes, weft_nvshmem_get_b)     \
    WEFT_NVSHMEM_COPY(WEFT_DEVICE, nvshmemx_put##bits##_nbi_block, bytes, weft_nvshmem_put_b) \
    WEFT_NVSHMEM_COPY(WEFT_DEVICE, nvshmemx_get##bits##_nbi_block, bytes, weft_nvshmem_get_b)
SHMEM_SIZES(WEFT_NVSHMEM_COPIES, _)
#undef WEFT_NVSHMEM_COPIES
#endif
#undef WEFT_NVSHMEM_COPY

#endif
