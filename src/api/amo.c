/* SPDX-License-Identifier: BSD-3-Clause */
/* Atomic memory operations. A near one is complete when it returns, so a non-blocking form differs
 * only in where the fetched value is stored. */
#include "api/amo.h"
#include "api/define.h"

/* clang-format off */
#define WITH_VALUE(N, T, NAME, OP)                                                                 \
    PAIR(void, N##_atomic_##NAME, (T *dest, T value, int pe),                                      \
         AMO_SILENT(OP, T, dest, &value, NULL))                                                    \
    PAIR(T, N##_atomic_fetch_##NAME, (T *dest, T value, int pe),                                   \
         AMO_RETURN(OP, T, dest, &value, NULL))                                                    \
    PAIR(void, N##_atomic_fetch_##NAME##_nbi, (T *fetch, T *dest, T value, int pe),                \
         AMO_STORE(OP, T, dest, &value, NULL))

#define STANDARD(N, T, _)                                                                          \
    WITH_VALUE(N, T, add, WEFT_AMO_ADD)                                                            \
    PAIR(void, N##_atomic_inc, (T *dest, int pe),                                                  \
         AMO_SILENT(WEFT_AMO_ADD, T, dest, &(T){1}, NULL))                                         \
    PAIR(T, N##_atomic_fetch_inc, (T *dest, int pe),                                               \
         AMO_RETURN(WEFT_AMO_ADD, T, dest, &(T){1}, NULL))                                         \
    PAIR(void, N##_atomic_fetch_inc_nbi, (T *fetch, T *dest, int pe),                              \
         AMO_STORE(WEFT_AMO_ADD, T, dest, &(T){1}, NULL))                                          \
    PAIR(T, N##_atomic_compare_swap, (T *dest, T cond, T value, int pe),                           \
         AMO_RETURN(WEFT_AMO_COMPARE_SWAP, T, dest, &value, &cond))                                \
    PAIR(void, N##_atomic_compare_swap_nbi, (T *fetch, T *dest, T cond, T value, int pe),          \
         AMO_STORE(WEFT_AMO_COMPARE_SWAP, T, dest, &value, &cond))

#define BITWISE(N, T, _)                                                                           \
    WITH_VALUE(N, T, and, WEFT_AMO_AND)                                                            \
    WITH_VALUE(N, T, or, WEFT_AMO_OR)                                                              \
    WITH_VALUE(N, T, xor, WEFT_AMO_XOR)

#define EXTENDED(N, T, _)                                                                          \
    PAIR(T, N##_atomic_fetch, (const T *source, int pe),                                           \
         AMO_RETURN(WEFT_AMO_FETCH, T, source, NULL, NULL))                                        \
    PAIR(void, N##_atomic_fetch_nbi, (T *fetch, const T *source, int pe),                          \
         AMO_STORE(WEFT_AMO_FETCH, T, source, NULL, NULL))                                         \
    PAIR(void, N##_atomic_set, (T *dest, T value, int pe),                                         \
         AMO_SILENT(WEFT_AMO_SET, T, dest, &value, NULL))                                          \
    PAIR(T, N##_atomic_swap, (T *dest, T value, int pe),                                           \
         AMO_RETURN(WEFT_AMO_SWAP, T, dest, &value, NULL))                                         \
    PAIR(void, N##_atomic_swap_nbi, (T *fetch, T *dest, T value, int pe),                          \
         AMO_STORE(WEFT_AMO_SWAP, T, dest, &value, NULL))

SHMEM_AMO_TYPES(STANDARD, _)
SHMEM_AMO_BITWISE_TYPES(BITWISE, _)
SHMEM_AMO_EXTENDED_TYPES(EXTENDED, _)
