/* SPDX-License-Identifier: BSD-3-Clause */
/* Every typed and sized prototype, as shapes over the tables of shmem_types.h. Part of shmem.h.
 *
 * A shape is a macro (TYPENAME, C type, prefix); the prefix is shmem_. FN declares a routine with
 * and without a leading context, ONE a routine that has no context. __extension__ is for complex
 * types, which C++ does not have. */
#ifndef SHMEM_H
#error "include shmem.h instead"
#endif
#ifndef SHMEM_TYPED_H
#define SHMEM_TYPED_H

#include "shmem_types.h"

/* clang-format off */
#define SHMEM_ONE(P, R, NAME, ...) __extension__ R P##NAME(__VA_ARGS__);
#define SHMEM_FN(P, R, NAME, ...)  __extension__ R P##NAME(__VA_ARGS__);                           \
                                   __extension__ R P##ctx_##NAME(shmem_ctx_t ctx, __VA_ARGS__);
#define SHMEM_STRIDES ptrdiff_t dst, ptrdiff_t sst
#define SHMEM_SIGNAL  uint64_t *sig_addr, uint64_t signal, int sig_op

/* Put and get, by type, by size and in bytes. */
#define SHMEM_RMA(N, T, P)                                                                         \
    SHMEM_FN(P, void, N##_put,     T *dest, const T *source, size_t nelems, int pe)                \
    SHMEM_FN(P, void, N##_get,     T *dest, const T *source, size_t nelems, int pe)                \
    SHMEM_FN(P, void, N##_put_nbi, T *dest, const T *source, size_t nelems, int pe)                \
    SHMEM_FN(P, void, N##_get_nbi, T *dest, const T *source, size_t nelems, int pe)                \
    SHMEM_FN(P, void, N##_p,       T *dest, T value, int pe)                                       \
    SHMEM_FN(P, T,    N##_g,       const T *source, int pe)                                        \
    SHMEM_FN(P, void, N##_iput,    T *dest, const T *source, SHMEM_STRIDES, size_t nelems, int pe) \
    SHMEM_FN(P, void, N##_iget,    T *dest, const T *source, SHMEM_STRIDES, size_t nelems, int pe) \
    SHMEM_FN(P, void, N##_ibput,   T *dest, const T *source, SHMEM_STRIDES, size_t bsize,          \
                                   size_t nblocks, int pe)                                         \
    SHMEM_FN(P, void, N##_ibget,   T *dest, const T *source, SHMEM_STRIDES, size_t bsize,          \
                                   size_t nblocks, int pe)                                         \
    SHMEM_FN(P, void, N##_put_signal,     T *dest, const T *source, size_t nelems, SHMEM_SIGNAL,   \
                                          int pe)                                                  \
    SHMEM_FN(P, void, N##_put_signal_nbi, T *dest, const T *source, size_t nelems, SHMEM_SIGNAL,   \
                                          int pe)
SHMEM_RMA_TYPES(SHMEM_RMA, shmem_)
#undef SHMEM_RMA

#define SHMEM_COPY(P, NAME)        SHMEM_FN(P, void, NAME, void *dest, const void *source,         \
                                            size_t nelems, int pe)
#define SHMEM_COPY_SIGNAL(P, NAME) SHMEM_FN(P, void, NAME, void *dest, const void *source,         \
                                            size_t nelems, SHMEM_SIGNAL, int pe)
#define SHMEM_COPY_STRIDED(P, NAME, ...) SHMEM_FN(P, void, NAME, void *dest, const void *source,   \
                                                  SHMEM_STRIDES, __VA_ARGS__, int pe)
#define SHMEM_SIZED(S, BYTES, P)                                                                   \
    SHMEM_COPY(P, put##S) SHMEM_COPY(P, put##S##_nbi)                                              \
    SHMEM_COPY(P, get##S) SHMEM_COPY(P, get##S##_nbi)                                              \
    SHMEM_COPY_SIGNAL(P, put##S##_signal) SHMEM_COPY_SIGNAL(P, put##S##_signal_nbi)                \
    SHMEM_COPY_STRIDED(P, iput##S, size_t nelems)                                                  \
    SHMEM_COPY_STRIDED(P, iget##S, size_t nelems)                                                  \
    SHMEM_COPY_STRIDED(P, ibput##S, size_t bsize, size_t nblocks)                                  \
    SHMEM_COPY_STRIDED(P, ibget##S, size_t bsize, size_t nblocks)
SHMEM_SIZES(SHMEM_SIZED, shmem_)
SHMEM_COPY(shmem_, putmem) SHMEM_COPY(shmem_, putmem_nbi)
SHMEM_COPY(shmem_, getmem) SHMEM_COPY(shmem_, getmem_nbi)
SHMEM_COPY_SIGNAL(shmem_, putmem_signal) SHMEM_COPY_SIGNAL(shmem_, putmem_signal_nbi)
#undef SHMEM_SIZED
#undef SHMEM_COPY_STRIDED
#undef SHMEM_COPY_SIGNAL
#undef SHMEM_COPY

/* Atomics: those of every AMO type, the bitwise ones, and the extended ones. */
#define SHMEM_AMO_VALUE(N, T, P, OP)                                                               \
    SHMEM_FN(P, void, N##_atomic_##OP,             T *dest, T value, int pe)                       \
    SHMEM_FN(P, T,    N##_atomic_fetch_##OP,       T *dest, T value, int pe)                       \
    SHMEM_FN(P, void, N##_atomic_fetch_##OP##_nbi, T *fetch, T *dest, T value, int pe)
#define SHMEM_AMO(N, T, P)                                                                         \
    SHMEM_FN(P, T,    N##_atomic_compare_swap,     T *dest, T cond, T value, int pe)               \
    SHMEM_FN(P, void, N##_atomic_compare_swap_nbi, T *fetch, T *dest, T cond, T value, int pe)     \
    SHMEM_FN(P, void, N##_atomic_inc,              T *dest, int pe)                                \
    SHMEM_FN(P, T,    N##_atomic_fetch_inc,        T *dest, int pe)                                \
    SHMEM_FN(P, void, N##_atomic_fetch_inc_nbi,    T *fetch, T *dest, int pe)                      \
    SHMEM_AMO_VALUE(N, T, P, add)
#define SHMEM_AMO_BITWISE(N, T, P)                                                                 \
    SHMEM_AMO_VALUE(N, T, P, and) SHMEM_AMO_VALUE(N, T, P, or) SHMEM_AMO_VALUE(N, T, P, xor)
#define SHMEM_AMO_EXTENDED(N, T, P)                                                                \
    SHMEM_FN(P, T,    N##_atomic_fetch,     const T *source, int pe)                               \
    SHMEM_FN(P, void, N##_atomic_fetch_nbi, T *fetch, const T *source, int pe)                     \
    SHMEM_FN(P, void, N##_atomic_set,       T *dest, T value, int pe)                              \
    SHMEM_FN(P, T,    N##_atomic_swap,      T *dest, T value, int pe)                              \
    SHMEM_FN(P, void, N##_atomic_swap_nbi,  T *fetch, T *dest, T value, int pe)
SHMEM_AMO_TYPES(SHMEM_AMO, shmem_)
SHMEM_AMO_BITWISE_TYPES(SHMEM_AMO_BITWISE, shmem_)
SHMEM_AMO_EXTENDED_TYPES(SHMEM_AMO_EXTENDED, shmem_)
#undef SHMEM_AMO_EXTENDED
#undef SHMEM_AMO_BITWISE
#undef SHMEM_AMO
#undef SHMEM_AMO_VALUE

/* Waiting and testing: one word, or sets of words. */
#define SHMEM_WAIT_SCALAR(N, T, P)                                                                 \
    SHMEM_ONE(P, void, N##_wait_until, T *ivar, int cmp, T cmp_value)                              \
    SHMEM_ONE(P, int,  N##_test,       T *ivar, int cmp, T cmp_value)
#define SHMEM_SET     size_t nelems, const int *status, int cmp
#define SHMEM_INDICES size_t nelems, size_t *indices, const int *status, int cmp
#define SHMEM_WAIT(N, T, P)                                                                        \
    SHMEM_ONE(P, void,   N##_wait_until_all,         T *ivars, SHMEM_SET, T cmp_value)             \
    SHMEM_ONE(P, size_t, N##_wait_until_any,         T *ivars, SHMEM_SET, T cmp_value)             \
    SHMEM_ONE(P, size_t, N##_wait_until_some,        T *ivars, SHMEM_INDICES, T cmp_value)         \
    SHMEM_ONE(P, void,   N##_wait_until_all_vector,  T *ivars, SHMEM_SET, const T *cmp_values)     \
    SHMEM_ONE(P, size_t, N##_wait_until_any_vector,  T *ivars, SHMEM_SET, const T *cmp_values)     \
    SHMEM_ONE(P, size_t, N##_wait_until_some_vector, T *ivars, SHMEM_INDICES, const T *cmp_values) \
    SHMEM_ONE(P, int,    N##_test_all,               T *ivars, SHMEM_SET, T cmp_value)             \
    SHMEM_ONE(P, size_t, N##_test_any,               T *ivars, SHMEM_SET, T cmp_value)             \
    SHMEM_ONE(P, size_t, N##_test_some,              T *ivars, SHMEM_INDICES, T cmp_value)         \
    SHMEM_ONE(P, int,    N##_test_all_vector,        T *ivars, SHMEM_SET, const T *cmp_values)     \
    SHMEM_ONE(P, size_t, N##_test_any_vector,        T *ivars, SHMEM_SET, const T *cmp_values)     \
    SHMEM_ONE(P, size_t, N##_test_some_vector,       T *ivars, SHMEM_INDICES, const T *cmp_values)
SHMEM_WAIT_SCALAR_TYPES(SHMEM_WAIT_SCALAR, shmem_)
SHMEM_WAIT_TYPES(SHMEM_WAIT, shmem_)
#undef SHMEM_WAIT
#undef SHMEM_INDICES
#undef SHMEM_SET
#undef SHMEM_WAIT_SCALAR

#undef SHMEM_SIGNAL
#undef SHMEM_STRIDES
#undef SHMEM_FN
#undef SHMEM_ONE
/* clang-format on */

#endif
