/* SPDX-License-Identifier: BSD-3-Clause */
/* The routines that OpenSHMEM 1.6 deprecates but still requires: names without the prefix,
 * constants with an underscore, atomics without `atomic`, and collectives on active sets.
 *
 * One line of shmem_typed.h includes this file, which uses that header's shapes. To drop the
 * deprecated routines, delete that line, this file, src/api/deprecated*.c and src/coll/active.[ch];
 * nothing else needs them. */
#ifndef SHMEM_DEPRECATED_H
#define SHMEM_DEPRECATED_H

#define _SHMEM_MAJOR_VERSION SHMEM_MAJOR_VERSION
#define _SHMEM_MINOR_VERSION SHMEM_MINOR_VERSION
#define _SHMEM_MAX_NAME_LEN  SHMEM_MAX_NAME_LEN
#define _SHMEM_VENDOR_STRING SHMEM_VENDOR_STRING
#define _SHMEM_CMP_EQ        SHMEM_CMP_EQ
#define _SHMEM_CMP_NE        SHMEM_CMP_NE
#define _SHMEM_CMP_GT        SHMEM_CMP_GT
#define _SHMEM_CMP_GE        SHMEM_CMP_GE
#define _SHMEM_CMP_LT        SHMEM_CMP_LT
#define _SHMEM_CMP_LE        SHMEM_CMP_LE

/* Sizes of the active-set routines' work arrays, in elements. */
#define SHMEM_SYNC_VALUE               0L
#define SHMEM_SYNC_SIZE                64
#define SHMEM_BARRIER_SYNC_SIZE        SHMEM_SYNC_SIZE
#define SHMEM_BCAST_SYNC_SIZE          SHMEM_SYNC_SIZE
#define SHMEM_COLLECT_SYNC_SIZE        SHMEM_SYNC_SIZE
#define SHMEM_REDUCE_SYNC_SIZE         SHMEM_SYNC_SIZE
#define SHMEM_ALLTOALL_SYNC_SIZE       SHMEM_SYNC_SIZE
#define SHMEM_ALLTOALLS_SYNC_SIZE      SHMEM_SYNC_SIZE
#define SHMEM_REDUCE_MIN_WRKDATA_SIZE  64
#define _SHMEM_SYNC_VALUE              SHMEM_SYNC_VALUE
#define _SHMEM_BARRIER_SYNC_SIZE       SHMEM_BARRIER_SYNC_SIZE
#define _SHMEM_BCAST_SYNC_SIZE         SHMEM_BCAST_SYNC_SIZE
#define _SHMEM_COLLECT_SYNC_SIZE       SHMEM_COLLECT_SYNC_SIZE
#define _SHMEM_REDUCE_SYNC_SIZE        SHMEM_REDUCE_SYNC_SIZE
#define _SHMEM_REDUCE_MIN_WRKDATA_SIZE SHMEM_REDUCE_MIN_WRKDATA_SIZE

/* clang-format off */
#define SHMEM_OLD_INTEGER_TYPES(X, A) X(int, int, A) X(long, long, A) X(longlong, long long, A)
#define SHMEM_OLD_NUMBER_TYPES(X, A)  SHMEM_OLD_INTEGER_TYPES(X, A) SHMEM_REALS(X, A)
#define SHMEM_OLD_WAIT_TYPES(X, A)    SHMEM_SHORTS(X, A)
#define SHMEM_C_OLD_INTEGER(X, A)     SHMEM_OLD_INTEGER_TYPES(X, A)
#define SHMEM_C_OLD_NUMBER(X, A)      SHMEM_OLD_NUMBER_TYPES(X, A)
/* The other types of atomics: their old names only exist without a type. */
#define SHMEM_C_NOT_OLD(X, A)         SHMEM_UNSIGNED_WORDS(X, A)
#define SHMEM_C_OLD_WAIT(X, A)        SHMEM_OLD_WAIT_TYPES(X, A)
#define SHMEM_TO_ALL_BITWISE_TYPES(X, A)    X(short, short, A) SHMEM_OLD_INTEGER_TYPES(X, A)
#define SHMEM_TO_ALL_ORDERED_TYPES(X, A)                                                           \
    SHMEM_TO_ALL_BITWISE_TYPES(X, A) SHMEM_REALS(X, A) X(longdouble, long double, A)
#define SHMEM_TO_ALL_ARITHMETIC_TYPES(X, A) SHMEM_TO_ALL_ORDERED_TYPES(X, A) SHMEM_COMPLEX(X, A)

/* Type-generic names, without a context. shmem_wait_until and shmem_sync are in shmem_generic.h. */
#if !defined(__cplusplus) && __STDC_VERSION__ >= 201112L
#define SHMEM_OLD_READ(p, pe)                                                                      \
    _Generic((p) SHMEM_C_OLD_NUMBER(SHMEM_ARM, _fetch) SHMEM_C_OLD_NUMBER(SHMEM_ARM_CONST, _fetch) \
             SHMEM_C_NOT_OLD(SHMEM_ARM, _atomic_fetch)                                             \
             SHMEM_C_NOT_OLD(SHMEM_ARM_CONST, _atomic_fetch)                                       \
             SHMEM_C_OLD_NUMBER(SHMEM_ARM_VOLATILE, _fetch)                                        \
             SHMEM_C_NOT_OLD(SHMEM_ARM_VOLATILE, _atomic_fetch))((const void *)(p), pe)
#define SHMEM_OLD_CALL(TYPES, OLD, NEW, p, ...)                                                    \
    _Generic((p) TYPES(SHMEM_ARM, OLD) SHMEM_C_NOT_OLD(SHMEM_ARM, NEW)                             \
             TYPES(SHMEM_ARM_VOLATILE, OLD) SHMEM_C_NOT_OLD(SHMEM_ARM_VOLATILE, NEW))              \
        ((void *)(p), __VA_ARGS__)
#define shmem_fetch(...) SHMEM_OLD_READ(__VA_ARGS__)
#define shmem_set(...)   SHMEM_OLD_CALL(SHMEM_C_OLD_NUMBER, _set, _atomic_set, __VA_ARGS__)
#define shmem_swap(...)  SHMEM_OLD_CALL(SHMEM_C_OLD_NUMBER, _swap, _atomic_swap, __VA_ARGS__)
#define shmem_cswap(...)                                                                           \
    SHMEM_OLD_CALL(SHMEM_C_OLD_INTEGER, _cswap, _atomic_compare_swap, __VA_ARGS__)
#define shmem_finc(...)  SHMEM_OLD_CALL(SHMEM_C_OLD_INTEGER, _finc, _atomic_fetch_inc, __VA_ARGS__)
#define shmem_inc(...)   SHMEM_OLD_CALL(SHMEM_C_OLD_INTEGER, _inc, _atomic_inc, __VA_ARGS__)
#define shmem_fadd(...)  SHMEM_OLD_CALL(SHMEM_C_OLD_INTEGER, _fadd, _atomic_fetch_add, __VA_ARGS__)
#define shmem_add(...)   SHMEM_OLD_CALL(SHMEM_C_OLD_INTEGER, _add, _atomic_add, __VA_ARGS__)
#endif

#endif

/* Prototypes, repeated each time that shmem_typed.h is used. First the atomics without atomic_ in
 * their names: */
#define SHMEM_OLD_NUMBER(N, T, P)                                                                  \
    SHMEM_ONE(P, T,    N##_fetch, const T *source, int pe)                                         \
    SHMEM_ONE(P, void, N##_set,   T *dest, T value, int pe)                                        \
    SHMEM_ONE(P, T,    N##_swap,  T *dest, T value, int pe)
#define SHMEM_OLD_INTEGER(N, T, P)                                                                 \
    SHMEM_ONE(P, T,    N##_cswap, T *dest, T cond, T value, int pe)                                \
    SHMEM_ONE(P, T,    N##_finc,  T *dest, int pe)                                                 \
    SHMEM_ONE(P, void, N##_inc,   T *dest, int pe)                                                 \
    SHMEM_ONE(P, T,    N##_fadd,  T *dest, T value, int pe)                                        \
    SHMEM_ONE(P, void, N##_add,   T *dest, T value, int pe)
SHMEM_EACH(OLD_NUMBER, SHMEM_OLD_NUMBER)
SHMEM_EACH(OLD_INTEGER, SHMEM_OLD_INTEGER)
#ifdef SHMEM_OVERLOADS
#define SHMEM_NOT_OLD_ONE(P, R, NAME, ROUTINE, ...)                                                \
    R shmem_##NAME(__VA_ARGS__) __asm__("shmem_" P "_atomic_" #ROUTINE);
#define SHMEM_NOT_OLD(N, T, P)                                                                     \
    SHMEM_NOT_OLD_ONE(P, T,    fetch, fetch,        const T *source, int pe)                       \
    SHMEM_NOT_OLD_ONE(P, void, set,   set,          T *dest, T value, int pe)                      \
    SHMEM_NOT_OLD_ONE(P, T,    swap,  swap,         T *dest, T value, int pe)                      \
    SHMEM_NOT_OLD_ONE(P, T,    cswap, compare_swap, T *dest, T cond, T value, int pe)              \
    SHMEM_NOT_OLD_ONE(P, T,    finc,  fetch_inc,    T *dest, int pe)                               \
    SHMEM_NOT_OLD_ONE(P, void, inc,   inc,          T *dest, int pe)                               \
    SHMEM_NOT_OLD_ONE(P, T,    fadd,  fetch_add,    T *dest, T value, int pe)                      \
    SHMEM_NOT_OLD_ONE(P, void, add,   add,          T *dest, T value, int pe)
SHMEM_EACH(NOT_OLD, SHMEM_NOT_OLD)
#undef SHMEM_NOT_OLD
#undef SHMEM_NOT_OLD_ONE
#endif
#undef SHMEM_OLD_INTEGER
#undef SHMEM_OLD_NUMBER

/* Waits for short integers, in all forms: the specification lists the forms for one word, but
 * programs also use the others. */
SHMEM_EACH(OLD_WAIT, SHMEM_WAIT)
SHMEM_EACH(OLD_WAIT, SHMEM_WAIT_UNTIL)

/* The routines below have no type-generic names. */
#ifndef SHMEM_OVERLOADS

/* Names that do not begin with shmem_. */
#define SHMEM_BARE(P, R, NAME, ...) R P##NAME(__VA_ARGS__);
#define SHMEM_BARES(P)                                                                             \
    SHMEM_BARE(P, void, start_pes, int npes)                                                       \
    SHMEM_BARE(P, int, _my_pe, void)                                                               \
    SHMEM_BARE(P, int, _num_pes, void)                                                             \
    SHMEM_BARE(P, void *, shmalloc, size_t size)                                                   \
    SHMEM_BARE(P, void *, shrealloc, void *ptr, size_t size)                                       \
    SHMEM_BARE(P, void *, shmemalign, size_t alignment, size_t size)                               \
    SHMEM_BARE(P, void, shfree, void *ptr)
SHMEM_BARES(SHMEM_TWIN)
#undef SHMEM_BARES
#undef SHMEM_BARE


/* wait is wait_until with SHMEM_CMP_NE; without a type, both mean long. */
#define SHMEM_WAIT_NE(N, T, P) SHMEM_ONE(P, void, N##_wait, T *ivar, T cmp_value)
#define SHMEM_WAIT_LONG(P)                                                                         \
    SHMEM_ONE(P, void, wait, long *ivar, long cmp_value)                                           \
    SHMEM_ONE(P, void, wait_until, long *ivar, int cmp, long cmp_value)
SHMEM_TO_ALL_BITWISE_TYPES(SHMEM_WAIT_NE, SHMEM_TWIN)
SHMEM_WAIT_LONG(SHMEM_TWIN)
#undef SHMEM_WAIT_LONG
#undef SHMEM_WAIT_NE

/* Collectives on an active set: PE_size PEs from PE_start on, 2^logPE_stride apart. pSync has
 * SHMEM_SYNC_SIZE elements, which equal SHMEM_SYNC_VALUE before and after the call; pWrk has
 * max(nreduce / 2 + 1, SHMEM_REDUCE_MIN_WRKDATA_SIZE) elements. */
#define SHMEM_ACTIVE_SET int PE_start, int logPE_stride, int PE_size
#define SHMEM_ACTIVE_BARRIERS(P)                                                                   \
    SHMEM_ONE(P, void, barrier, SHMEM_ACTIVE_SET, long *pSync)                                     \
    SHMEM_ONE(P, void, sync, SHMEM_ACTIVE_SET, long *pSync)
#define SHMEM_ACTIVE(P, NAME, ...)                                                                 \
    SHMEM_ONE(P, void, NAME, void *dest, const void *source, __VA_ARGS__, SHMEM_ACTIVE_SET,        \
              long *pSync)
#define SHMEM_ACTIVE_SIZED(P, S)                                                                   \
    SHMEM_ACTIVE(P, broadcast##S, size_t nelems, int PE_root)                                      \
    SHMEM_ACTIVE(P, collect##S,   size_t nelems)                                                   \
    SHMEM_ACTIVE(P, fcollect##S,  size_t nelems)                                                   \
    SHMEM_ACTIVE(P, alltoall##S,  size_t nelems)                                                   \
    SHMEM_ACTIVE(P, alltoalls##S, SHMEM_STRIDES, size_t nelems)
#define SHMEM_TO_ALL(N, T, P, OP)                                                                  \
    SHMEM_ONE(P, void, N##_##OP##_to_all, T *dest, const T *source, int nreduce, SHMEM_ACTIVE_SET, \
              T *pWrk, long *pSync)
#define SHMEM_TO_ALL_BITWISE(N, T, P)                                                              \
    SHMEM_TO_ALL(N, T, P, and) SHMEM_TO_ALL(N, T, P, or) SHMEM_TO_ALL(N, T, P, xor)
#define SHMEM_TO_ALL_ORDERED(N, T, P)    SHMEM_TO_ALL(N, T, P, max) SHMEM_TO_ALL(N, T, P, min)
#define SHMEM_TO_ALL_ARITHMETIC(N, T, P) SHMEM_TO_ALL(N, T, P, sum) SHMEM_TO_ALL(N, T, P, prod)
SHMEM_ACTIVE_BARRIERS(SHMEM_TWIN)
SHMEM_ACTIVE_SIZED(SHMEM_TWIN, 32)
SHMEM_ACTIVE_SIZED(SHMEM_TWIN, 64)
SHMEM_TO_ALL_BITWISE_TYPES(SHMEM_TO_ALL_BITWISE, SHMEM_TWIN)
SHMEM_TO_ALL_ORDERED_TYPES(SHMEM_TO_ALL_ORDERED, SHMEM_TWIN)
SHMEM_TO_ALL_ARITHMETIC_TYPES(SHMEM_TO_ALL_ARITHMETIC, SHMEM_TWIN)
#undef SHMEM_TO_ALL_ARITHMETIC
#undef SHMEM_TO_ALL_ORDERED
#undef SHMEM_TO_ALL_BITWISE
#undef SHMEM_TO_ALL
#undef SHMEM_ACTIVE_SIZED
#undef SHMEM_ACTIVE
#undef SHMEM_ACTIVE_BARRIERS
#undef SHMEM_ACTIVE_SET

#endif
/* clang-format on */
