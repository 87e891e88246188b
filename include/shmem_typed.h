/* SPDX-License-Identifier: BSD-3-Clause */
/* Every typed and sized prototype, made by applying macros ("shapes") to the tables of
 * shmem_types.h.
 *
 * A shape is a macro (TYPENAME, C type, P). FN declares a routine with and without a context, TEAM
 * a collective on a team, ONE any other routine. __extension__ allows complex types in C++. The
 * shapes are used three times:
 *
 *   by shmem.h            SHMEM_TWIN is empty: shmem_int_put
 *   by pshmem.h           SHMEM_TWIN is the prefix p: pshmem_int_put
 *   by shmem_overloads.h  TYPENAME is empty and P is "int": shmem_put of C++, with the symbol
 *                         shmem_int_put */
#ifndef SHMEM_H
#error "include shmem.h instead"
#endif

#include "shmem_types.h"

/* clang-format off */
#ifdef SHMEM_OVERLOADS
#define SHMEM_ONE(P, R, NAME, ...)                                                                 \
    __extension__ R shmem##NAME(__VA_ARGS__) __asm__("shmem_" P #NAME);
#define SHMEM_CTX(P, R, NAME, ...)                                                                 \
    __extension__ R shmem##NAME(shmem_ctx_t ctx, __VA_ARGS__) __asm__("shmem_ctx_" P #NAME);
#define SHMEM_OVERLOAD(N, T, SHAPE) SHAPE(, T, #N)
#define SHMEM_EACH(GROUP, SHAPE)    SHMEM_C_##GROUP(SHMEM_OVERLOAD, SHAPE)
#else
#define SHMEM_ONE(P, R, NAME, ...) __extension__ R P##shmem_##NAME(__VA_ARGS__);
#define SHMEM_CTX(P, R, NAME, ...)                                                                 \
    __extension__ R P##shmem_ctx_##NAME(shmem_ctx_t ctx, __VA_ARGS__);
#define SHMEM_EACH(GROUP, SHAPE) SHMEM_##GROUP##_TYPES(SHAPE, SHMEM_TWIN)
#endif
#define SHMEM_FN(P, R, NAME, ...)                                                                  \
    SHMEM_ONE(P, R, NAME, __VA_ARGS__) SHMEM_CTX(P, R, NAME, __VA_ARGS__)
#define SHMEM_TEAM(P, NAME, ...) SHMEM_ONE(P, int, NAME, shmem_team_t team, __VA_ARGS__)
#define SHMEM_STRIDES ptrdiff_t dst, ptrdiff_t sst
#define SHMEM_SIGNAL  uint64_t *sig_addr, uint64_t signal, int sig_op

/* Put and get. */
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
SHMEM_EACH(RMA, SHMEM_RMA)
#undef SHMEM_RMA

/* Atomics: for every AMO type, the bitwise ones, and the extended ones. */
#define SHMEM_AMO_VALUE(NAME, T, P, OP)                                                            \
    SHMEM_FN(P, void, NAME##_##OP,             T *dest, T value, int pe)                           \
    SHMEM_FN(P, T,    NAME##_fetch_##OP,       T *dest, T value, int pe)                           \
    SHMEM_FN(P, void, NAME##_fetch_##OP##_nbi, T *fetch, T *dest, T value, int pe)
#define SHMEM_AMO(N, T, P)                                                                         \
    SHMEM_FN(P, T,    N##_atomic_compare_swap,     T *dest, T cond, T value, int pe)               \
    SHMEM_FN(P, void, N##_atomic_compare_swap_nbi, T *fetch, T *dest, T cond, T value, int pe)     \
    SHMEM_FN(P, void, N##_atomic_inc,              T *dest, int pe)                                \
    SHMEM_FN(P, T,    N##_atomic_fetch_inc,        T *dest, int pe)                                \
    SHMEM_FN(P, void, N##_atomic_fetch_inc_nbi,    T *fetch, T *dest, int pe)                      \
    SHMEM_AMO_VALUE(N##_atomic, T, P, add)
#define SHMEM_AMO_BITWISE(N, T, P)                                                                 \
    SHMEM_AMO_VALUE(N##_atomic, T, P, and)                                                         \
    SHMEM_AMO_VALUE(N##_atomic, T, P, or)                                                          \
    SHMEM_AMO_VALUE(N##_atomic, T, P, xor)
#define SHMEM_AMO_EXTENDED(N, T, P)                                                                \
    SHMEM_FN(P, T,    N##_atomic_fetch,     const T *source, int pe)                               \
    SHMEM_FN(P, void, N##_atomic_fetch_nbi, T *fetch, const T *source, int pe)                     \
    SHMEM_FN(P, void, N##_atomic_set,       T *dest, T value, int pe)                              \
    SHMEM_FN(P, T,    N##_atomic_swap,      T *dest, T value, int pe)                              \
    SHMEM_FN(P, void, N##_atomic_swap_nbi,  T *fetch, T *dest, T value, int pe)
SHMEM_EACH(AMO, SHMEM_AMO)
SHMEM_EACH(AMO_BITWISE, SHMEM_AMO_BITWISE)
SHMEM_EACH(AMO_EXTENDED, SHMEM_AMO_EXTENDED)
#undef SHMEM_AMO_EXTENDED
#undef SHMEM_AMO_BITWISE
#undef SHMEM_AMO
#undef SHMEM_AMO_VALUE

/* Waits and tests of one word, or of sets of words. */
#define SHMEM_SET     size_t nelems, const int *status, int cmp
#define SHMEM_INDICES size_t nelems, size_t *indices, const int *status, int cmp
#define SHMEM_WAIT(N, T, P)                                                                        \
    SHMEM_ONE(P, int,    N##_test,                   T *ivar, int cmp, T cmp_value)                \
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
#define SHMEM_WAIT_UNTIL(N, T, P) SHMEM_ONE(P, void, N##_wait_until, T *ivar, int cmp, T cmp_value)
SHMEM_EACH(WAIT, SHMEM_WAIT)
SHMEM_EACH(WAIT_UNTIL, SHMEM_WAIT_UNTIL)

/* In C++, the OpenSHMEM 1.3 routines among these also take 1.3's volatile flags; so do the typed
 * names of waits. */
#ifdef SHMEM_OVERLOADS
#define SHMEM_VOLATILE_ONE(NAME, R, SYMBOL, ...) R NAME(__VA_ARGS__) __asm__(SYMBOL);
#define SHMEM_VOLATILE_WAIT(N, T, P)                                                               \
    SHMEM_ONE(P, int,  N##_test,       volatile T *ivar, int cmp, T cmp_value)                     \
    SHMEM_ONE(P, void, N##_wait_until, volatile T *ivar, int cmp, T cmp_value)
#define SHMEM_VOLATILE_TYPED(N, T, A)                                                              \
    SHMEM_VOLATILE_ONE(shmem_##N##_wait_until, void, "shmem_" #N "_wait_until",                    \
                       volatile T *ivar, int cmp, T cmp_value)
#define SHMEM_VOLATILE_AMO(N, T, P)                                                                \
    SHMEM_FN(P, T,    N##_atomic_compare_swap, volatile T *dest, T cond, T value, int pe)          \
    SHMEM_FN(P, void, N##_atomic_inc,          volatile T *dest, int pe)                           \
    SHMEM_FN(P, T,    N##_atomic_fetch_inc,    volatile T *dest, int pe)                           \
    SHMEM_FN(P, void, N##_atomic_add,          volatile T *dest, T value, int pe)                  \
    SHMEM_FN(P, T,    N##_atomic_fetch_add,    volatile T *dest, T value, int pe)
#define SHMEM_VOLATILE_AMO_EXTENDED(N, T, P)                                                       \
    SHMEM_FN(P, T,    N##_atomic_fetch, const volatile T *source, int pe)                          \
    SHMEM_FN(P, void, N##_atomic_set,   volatile T *dest, T value, int pe)                         \
    SHMEM_FN(P, T,    N##_atomic_swap,  volatile T *dest, T value, int pe)
SHMEM_EACH(AMO, SHMEM_VOLATILE_AMO)
SHMEM_EACH(AMO_EXTENDED, SHMEM_VOLATILE_AMO_EXTENDED)
SHMEM_EACH(WAIT, SHMEM_VOLATILE_WAIT)
SHMEM_EACH(OLD_WAIT, SHMEM_VOLATILE_WAIT)
SHMEM_WORDS(SHMEM_VOLATILE_TYPED, )
SHMEM_SHORTS(SHMEM_VOLATILE_TYPED, )
#undef SHMEM_VOLATILE_AMO_EXTENDED
#undef SHMEM_VOLATILE_AMO
#undef SHMEM_VOLATILE_TYPED
#undef SHMEM_VOLATILE_WAIT
#undef SHMEM_VOLATILE_ONE
#endif

/* Collectives on a team. */
#define SHMEM_TYPED_COLLECTIVES(N, T, P)                                                           \
    SHMEM_TEAM(P, N##_broadcast, T *dest, const T *source, size_t nelems, int PE_root)             \
    SHMEM_TEAM(P, N##_collect,   T *dest, const T *source, size_t nelems)                          \
    SHMEM_TEAM(P, N##_fcollect,  T *dest, const T *source, size_t nelems)                          \
    SHMEM_TEAM(P, N##_alltoall,  T *dest, const T *source, size_t nelems)                          \
    SHMEM_TEAM(P, N##_alltoalls, T *dest, const T *source, SHMEM_STRIDES, size_t nelems)
SHMEM_EACH(RMA, SHMEM_TYPED_COLLECTIVES)
#undef SHMEM_TYPED_COLLECTIVES

#define SHMEM_REDUCE(P, NAME, T) SHMEM_TEAM(P, NAME, T *dest, const T *source, size_t nreduce)
#define SHMEM_SCAN(P, NAME, T)   SHMEM_TEAM(P, NAME, T *dest, const T *source, size_t nelems)
#define SHMEM_REDUCE_BITWISE(N, T, P)                                                              \
    SHMEM_REDUCE(P, N##_and_reduce, T)                                                             \
    SHMEM_REDUCE(P, N##_or_reduce, T)                                                              \
    SHMEM_REDUCE(P, N##_xor_reduce, T)
#define SHMEM_REDUCE_ORDERED(N, T, P)                                                              \
    SHMEM_REDUCE(P, N##_max_reduce, T)                                                             \
    SHMEM_REDUCE(P, N##_min_reduce, T)
#define SHMEM_REDUCE_ARITHMETIC(N, T, P)                                                           \
    SHMEM_REDUCE(P, N##_sum_reduce, T)                                                             \
    SHMEM_REDUCE(P, N##_prod_reduce, T)                                                            \
    SHMEM_SCAN(P, N##_sum_inscan, T)                                                               \
    SHMEM_SCAN(P, N##_sum_exscan, T)
SHMEM_EACH(BITWISE, SHMEM_REDUCE_BITWISE)
SHMEM_EACH(RMA, SHMEM_REDUCE_ORDERED)
SHMEM_EACH(ARITHMETIC, SHMEM_REDUCE_ARITHMETIC)
#undef SHMEM_REDUCE_ARITHMETIC
#undef SHMEM_REDUCE_ORDERED
#undef SHMEM_REDUCE_BITWISE
#undef SHMEM_SCAN
#undef SHMEM_REDUCE

/* Routines named by the size of an element, and routines that count in bytes. They have no
 * type-generic names. */
#ifndef SHMEM_OVERLOADS
#define SHMEM_COPY(P, NAME)        SHMEM_FN(P, void, NAME, void *dest, const void *source,         \
                                            size_t nelems, int pe)
#define SHMEM_COPY_SIGNAL(P, NAME) SHMEM_FN(P, void, NAME, void *dest, const void *source,         \
                                            size_t nelems, SHMEM_SIGNAL, int pe)
#define SHMEM_COPY_STRIDED(P, NAME, ...) SHMEM_FN(P, void, NAME, void *dest, const void *source,   \
                                                  SHMEM_STRIDES, __VA_ARGS__, int pe)
#define SHMEM_COPY_TEAM(P, NAME, ...) SHMEM_TEAM(P, NAME, void *dest, const void *source,          \
                                                 __VA_ARGS__)
#define SHMEM_COPIES(P, S)                                                                         \
    SHMEM_COPY(P, put##S) SHMEM_COPY(P, put##S##_nbi)                                              \
    SHMEM_COPY(P, get##S) SHMEM_COPY(P, get##S##_nbi)                                              \
    SHMEM_COPY_SIGNAL(P, put##S##_signal) SHMEM_COPY_SIGNAL(P, put##S##_signal_nbi)
#define SHMEM_SIZED(S, BYTES, P)                                                                   \
    SHMEM_COPIES(P, S)                                                                             \
    SHMEM_COPY_STRIDED(P, iput##S, size_t nelems)                                                  \
    SHMEM_COPY_STRIDED(P, iget##S, size_t nelems)                                                  \
    SHMEM_COPY_STRIDED(P, ibput##S, size_t bsize, size_t nblocks)                                  \
    SHMEM_COPY_STRIDED(P, ibget##S, size_t bsize, size_t nblocks)
SHMEM_SIZES(SHMEM_SIZED, SHMEM_TWIN)
SHMEM_COPIES(SHMEM_TWIN, mem)
SHMEM_COPY_TEAM(SHMEM_TWIN, broadcastmem, size_t nelems, int PE_root)
SHMEM_COPY_TEAM(SHMEM_TWIN, collectmem,   size_t nelems)
SHMEM_COPY_TEAM(SHMEM_TWIN, fcollectmem,  size_t nelems)
SHMEM_COPY_TEAM(SHMEM_TWIN, alltoallmem,  size_t nelems)
SHMEM_COPY_TEAM(SHMEM_TWIN, alltoallsmem, SHMEM_STRIDES, size_t nelems)
#undef SHMEM_SIZED
#undef SHMEM_COPIES
#undef SHMEM_COPY_TEAM
#undef SHMEM_COPY_STRIDED
#undef SHMEM_COPY_SIGNAL
#undef SHMEM_COPY
#endif

#include "shmem_deprecated.h"

#undef SHMEM_WAIT_UNTIL
#undef SHMEM_WAIT
#undef SHMEM_INDICES
#undef SHMEM_SET
#undef SHMEM_SIGNAL
#undef SHMEM_STRIDES
#undef SHMEM_TEAM
#undef SHMEM_FN
#undef SHMEM_EACH
#undef SHMEM_OVERLOAD
#undef SHMEM_CTX
#undef SHMEM_ONE
/* clang-format on */
