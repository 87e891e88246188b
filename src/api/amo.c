/* SPDX-License-Identifier: BSD-3-Clause */
/* Atomic memory operations. A near one is complete when it returns, so the non-blocking forms
 * differ only in where the fetched value goes. */
#include "core/amo.h"
#include "api/pair.h"

/* Inlined with a constant operation and width, so that one instruction is left of it. */
static inline __attribute__((always_inline)) void amo(const char *call, enum weft_amo_op op,
                                                      size_t bytes, const void *dest,
                                                      const void *value, const void *cond,
                                                      void *fetched, int pe) {
    if (__builtin_expect(weft_amo(op, bytes, (void *)dest, value, cond, fetched, pe) != 0, 0))
        weft_misuse_access(call, op == WEFT_AMO_FETCH ? "source" : "dest", dest, bytes, pe);
}

/* clang-format off */
/* What becomes of the word before: nobody wants it, it is returned, or it is stored at `fetch`. */
#define SILENT(OP, T, DEST, VALUE, COND)                                                           \
    amo(__func__, OP, sizeof(T), DEST, VALUE, COND, NULL, pe);
#define RETURN(OP, T, DEST, VALUE, COND)                                                           \
    T before;                                                                                      \
    amo(__func__, OP, sizeof(T), DEST, VALUE, COND, &before, pe);                                  \
    return before;
#define STORE(OP, T, DEST, VALUE, COND)                                                            \
    weft_check_local(__func__, "fetch", fetch, sizeof(T));                                         \
    amo(__func__, OP, sizeof(T), DEST, VALUE, COND, fetch, pe);

#define WITH_VALUE(N, T, NAME, OP)                                                                 \
    PAIR(void, N##_atomic_##NAME, (T *dest, T value, int pe), SILENT(OP, T, dest, &value, NULL))   \
    PAIR(T, N##_atomic_fetch_##NAME, (T *dest, T value, int pe),                                   \
         RETURN(OP, T, dest, &value, NULL))                                                        \
    PAIR(void, N##_atomic_fetch_##NAME##_nbi, (T *fetch, T *dest, T value, int pe),                \
         STORE(OP, T, dest, &value, NULL))

#define STANDARD(N, T, _)                                                                          \
    WITH_VALUE(N, T, add, WEFT_AMO_ADD)                                                            \
    PAIR(void, N##_atomic_inc, (T *dest, int pe), SILENT(WEFT_AMO_ADD, T, dest, &(T){1}, NULL))    \
    PAIR(T, N##_atomic_fetch_inc, (T *dest, int pe),                                               \
         RETURN(WEFT_AMO_ADD, T, dest, &(T){1}, NULL))                                             \
    PAIR(void, N##_atomic_fetch_inc_nbi, (T *fetch, T *dest, int pe),                              \
         STORE(WEFT_AMO_ADD, T, dest, &(T){1}, NULL))                                              \
    PAIR(T, N##_atomic_compare_swap, (T *dest, T cond, T value, int pe),                           \
         RETURN(WEFT_AMO_COMPARE_SWAP, T, dest, &value, &cond))                                    \
    PAIR(void, N##_atomic_compare_swap_nbi, (T *fetch, T *dest, T cond, T value, int pe),          \
         STORE(WEFT_AMO_COMPARE_SWAP, T, dest, &value, &cond))

#define BITWISE(N, T, _)                                                                           \
    WITH_VALUE(N, T, and, WEFT_AMO_AND)                                                            \
    WITH_VALUE(N, T, or, WEFT_AMO_OR)                                                              \
    WITH_VALUE(N, T, xor, WEFT_AMO_XOR)

#define EXTENDED(N, T, _)                                                                          \
    PAIR(T, N##_atomic_fetch, (const T *source, int pe),                                           \
         RETURN(WEFT_AMO_FETCH, T, source, NULL, NULL))                                            \
    PAIR(void, N##_atomic_fetch_nbi, (T *fetch, const T *source, int pe),                          \
         STORE(WEFT_AMO_FETCH, T, source, NULL, NULL))                                             \
    PAIR(void, N##_atomic_set, (T *dest, T value, int pe),                                         \
         SILENT(WEFT_AMO_SET, T, dest, &value, NULL))                                              \
    PAIR(T, N##_atomic_swap, (T *dest, T value, int pe),                                           \
         RETURN(WEFT_AMO_SWAP, T, dest, &value, NULL))                                             \
    PAIR(void, N##_atomic_swap_nbi, (T *fetch, T *dest, T value, int pe),                          \
         STORE(WEFT_AMO_SWAP, T, dest, &value, NULL))

SHMEM_AMO_TYPES(STANDARD, _)
SHMEM_AMO_BITWISE_TYPES(BITWISE, _)
SHMEM_AMO_EXTENDED_TYPES(EXTENDED, _)
