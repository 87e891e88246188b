/* SPDX-License-Identifier: BSD-3-Clause */
/* Atomics by NVSHMEM's names, on words of 4 and 8 bytes. The links must have atomics, as NVLink
 * has: see the flag WEFT_DEVICE_ATOMICS of the state's world. */
#ifndef WEFT_NVSHMEM_ATOMIC_CUH
#define WEFT_NVSHMEM_ATOMIC_CUH

#include "weft/nvshmem/device/state.cuh"

/* --- Words of either size, as bits: `bytes` is a compile-time constant ------------------------ */

#define WEFT_NVSHMEM_FETCHING(name)                                                                \
    WEFT_DEVICE uint64_t weft_nvshmem_##name(void *dest, size_t bytes, uint64_t value, int pe) {   \
        return bytes == 8                                                                          \
                   ? weft_atomic_##name##64(WEFT_NVSHMEM_WORLD, (uint64_t *)dest, value, pe)       \
                   : weft_atomic_##name##32(WEFT_NVSHMEM_WORLD, (uint32_t *)dest, (uint32_t)value, \
                                            pe);                                                   \
    }
#define WEFT_NVSHMEM_CHANGING(name)                                                            \
    WEFT_DEVICE void weft_nvshmem_##name(void *dest, size_t bytes, uint64_t value, int pe) {   \
        if (bytes == 8)                                                                        \
            weft_atomic_##name##64(WEFT_NVSHMEM_WORLD, (uint64_t *)dest, value, pe);           \
        else                                                                                   \
            weft_atomic_##name##32(WEFT_NVSHMEM_WORLD, (uint32_t *)dest, (uint32_t)value, pe); \
    }
WEFT_NVSHMEM_FETCHING(swap)
WEFT_NVSHMEM_FETCHING(fetch_add)
WEFT_NVSHMEM_FETCHING(fetch_and)
WEFT_NVSHMEM_FETCHING(fetch_or)
WEFT_NVSHMEM_FETCHING(fetch_xor)
WEFT_NVSHMEM_CHANGING(set)
WEFT_NVSHMEM_CHANGING(add)
WEFT_NVSHMEM_CHANGING(and)
WEFT_NVSHMEM_CHANGING(or)
WEFT_NVSHMEM_CHANGING(xor)
#undef WEFT_NVSHMEM_FETCHING
#undef WEFT_NVSHMEM_CHANGING

WEFT_DEVICE uint64_t weft_nvshmem_fetch(const void *source, size_t bytes, int pe) {
    return bytes == 8 ? weft_atomic_fetch64(WEFT_NVSHMEM_WORLD, (const uint64_t *)source, pe)
                      : weft_atomic_fetch32(WEFT_NVSHMEM_WORLD, (const uint32_t *)source, pe);
}

WEFT_DEVICE uint64_t weft_nvshmem_compare_swap(void *dest, size_t bytes, uint64_t cond,
                                               uint64_t value, int pe) {
    return bytes == 8
               ? weft_atomic_compare_swap64(WEFT_NVSHMEM_WORLD, (uint64_t *)dest, cond, value, pe)
               : weft_atomic_compare_swap32(WEFT_NVSHMEM_WORLD, (uint32_t *)dest, (uint32_t)cond,
                                            (uint32_t)value, pe);
}

/* --- Names ------------------------------------------------------------------------------------ */

/* Atomics of the extended types, which include floating point. */
#define WEFT_NVSHMEM_ATOMICS(N, T, _)                                                           \
    WEFT_DEVICE T nvshmem_##N##_atomic_fetch(const T *source, int pe) {                         \
        T value;                                                                                \
        weft_nvshmem_set_bits(&value, sizeof value, weft_nvshmem_fetch(source, sizeof(T), pe)); \
        return value;                                                                           \
    }                                                                                           \
    WEFT_DEVICE void nvshmem_##N##_atomic_set(T *dest, T value, int pe) {                       \
        weft_nvshmem_set(dest, sizeof(T), weft_nvshmem_bits(&value, sizeof value), pe);         \
    }                                                                                           \
    WEFT_DEVICE T nvshmem_##N##_atomic_swap(T *dest, T value, int pe) {                         \
        weft_nvshmem_set_bits(                                                                  \
            &value, sizeof value,                                                               \
            weft_nvshmem_swap(dest, sizeof(T), weft_nvshmem_bits(&value, sizeof value), pe));   \
        return value;                                                                           \
    }
SHMEM_AMO_EXTENDED_TYPES(WEFT_NVSHMEM_ATOMICS, _)
#undef WEFT_NVSHMEM_ATOMICS

#define WEFT_NVSHMEM_ATOMICS(N, T, _)                                                              \
    WEFT_DEVICE T nvshmem_##N##_atomic_compare_swap(T *dest, T cond, T value, int pe) {            \
        return (T)weft_nvshmem_compare_swap(dest, sizeof(T), (uint64_t)cond, (uint64_t)value, pe); \
    }                                                                                              \
    WEFT_DEVICE T nvshmem_##N##_atomic_fetch_add(T *dest, T value, int pe) {                       \
        return (T)weft_nvshmem_fetch_add(dest, sizeof(T), (uint64_t)value, pe);                    \
    }                                                                                              \
    WEFT_DEVICE T nvshmem_##N##_atomic_fetch_inc(T *dest, int pe) {                                \
        return (T)weft_nvshmem_fetch_add(dest, sizeof(T), 1, pe);                                  \
    }                                                                                              \
    WEFT_DEVICE void nvshmem_##N##_atomic_add(T *dest, T value, int pe) {                          \
        weft_nvshmem_add(dest, sizeof(T), (uint64_t)value, pe);                                    \
    }                                                                                              \
    WEFT_DEVICE void nvshmem_##N##_atomic_inc(T *dest, int pe) {                                   \
        weft_nvshmem_add(dest, sizeof(T), 1, pe);                                                  \
    }
SHMEM_AMO_TYPES(WEFT_NVSHMEM_ATOMICS, _)
#undef WEFT_NVSHMEM_ATOMICS

#define WEFT_NVSHMEM_BITWISE(N, T, op)                                           \
    WEFT_DEVICE T nvshmem_##N##_atomic_fetch_##op(T *dest, T value, int pe) {    \
        return (T)weft_nvshmem_fetch_##op(dest, sizeof(T), (uint64_t)value, pe); \
    }                                                                            \
    WEFT_DEVICE void nvshmem_##N##_atomic_##op(T *dest, T value, int pe) {       \
        weft_nvshmem_##op(dest, sizeof(T), (uint64_t)value, pe);                 \
    }
SHMEM_AMO_BITWISE_TYPES(WEFT_NVSHMEM_BITWISE, and)
SHMEM_AMO_BITWISE_TYPES(WEFT_NVSHMEM_BITWISE, or)
SHMEM_AMO_BITWISE_TYPES(WEFT_NVSHMEM_BITWISE, xor)
#undef WEFT_NVSHMEM_BITWISE

#endif
