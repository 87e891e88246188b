/* SPDX-License-Identifier: BSD-3-Clause */
/* Integers wrap around, as they do in the library. Operands of reals are chosen so that every sum
 * and product is exact, in any order, and no zero has a sign. */
#include "coll_routines.h"
#include <complex.h>
#include <string.h>
#include "routines.h"

/* clang-format off */
#define INTEGERS(X, A)                                                                             \
    SHMEM_AMO_TYPES(X, A) SHMEM_FIXED_NARROW(X, A) SHMEM_CHARS(X, A) SHMEM_SHORTS(X, A)
#define FLOATS(X, A) SHMEM_REALS(X, A) X(longdouble, long double, A)

#define FOLD(N, T, OP, EXPRESSION)                                                                 \
    static void fold_##N##_##OP(void *sum, const void *operand, size_t nelems) {                   \
        const T *b = operand;                                                                      \
        for (T *a = sum; nelems-- > 0; a++, b++)                                                   \
            *a = (T)(EXPRESSION);                                                                  \
    }
#define BITWISE_FOLDS(N, T, _)                                                                     \
    FOLD(N, T, and, *a & *b) FOLD(N, T, or, *a | *b) FOLD(N, T, xor, *a ^ *b)
#define ORDERED_FOLDS(N, T, _) FOLD(N, T, max, *a > *b ? *a : *b) FOLD(N, T, min, *a < *b ? *a : *b)
#define INTEGER_FOLDS(N, T, _)                                                                     \
    FOLD(N, T, sum, (unsigned long long)*a + (unsigned long long)*b)                               \
    FOLD(N, T, prod, (unsigned long long)*a * (unsigned long long)*b)
#define REAL_FOLDS(N, T, _) FOLD(N, T, sum, *a + *b) FOLD(N, T, prod, *a * *b)
SHMEM_BITWISE_TYPES(BITWISE_FOLDS, _)
SHMEM_TO_ALL_BITWISE_TYPES(BITWISE_FOLDS, _)
SHMEM_RMA_TYPES(ORDERED_FOLDS, _)
INTEGERS(INTEGER_FOLDS, _)
FLOATS(REAL_FOLDS, _)
SHMEM_COMPLEX(REAL_FOLDS, _)

/* Reals: powers of two with a sign for products, small numbers for other operations. */
#define REAL_OPERANDS(N, T, _)                                                                     \
    static void operand_##N##_prod(void *to, uint64_t choice) {                                    \
        static const T values[] = {1, -1, 2, -2, 0.5, -0.5, 4, -0.25};                             \
        T value = values[choice % 8];                                                              \
        memset(to, 0, sizeof value);                                                               \
        memcpy(to, &value, VALUE_BYTES(T));                                                        \
    }                                                                                              \
    static void operand_##N##_sum(void *to, uint64_t choice) {                                     \
        T value = (T)((int)(choice % 4001) - 2000) / 8;                                            \
        memset(to, 0, sizeof value);                                                               \
        memcpy(to, &value, VALUE_BYTES(T));                                                        \
    }
/* Complex factors: 2 + i, rotated by quarters: no power of it has a part that is zero. */
#define COMPLEX_OPERANDS(N, T, _)                                                                  \
    static void operand_##N##_prod(void *to, uint64_t choice) {                                    \
        static const signed char parts[4][2] = {{2, 1}, {-1, 2}, {-2, -1}, {1, -2}};               \
        T value = parts[choice % 4][0] + parts[choice % 4][1] * I;                                 \
        memcpy(to, &value, sizeof value);                                                          \
    }                                                                                              \
    static void operand_##N##_sum(void *to, uint64_t choice) {                                     \
        T value = (int)(choice % 201) - 100 + ((int)(choice / 256 % 201) - 100) * I;               \
        memcpy(to, &value, sizeof value);                                                          \
    }
FLOATS(REAL_OPERANDS, _)
SHMEM_COMPLEX(COMPLEX_OPERANDS, _)

#define REDUCE(N, T, OP)                                                                           \
    static int reduce_##N##_##OP(shmem_team_t team, void *dest, const void *source,                \
                                 size_t nelems) {                                                  \
        return shmem_##N##_##OP##_reduce(team, dest, source, nelems);                              \
    }
#define REDUCE_BITWISE(N, T, _)    REDUCE(N, T, and) REDUCE(N, T, or) REDUCE(N, T, xor)
#define REDUCE_ORDERED(N, T, _)    REDUCE(N, T, max) REDUCE(N, T, min)
#define REDUCE_ARITHMETIC(N, T, _) REDUCE(N, T, sum) REDUCE(N, T, prod)
SHMEM_BITWISE_TYPES(REDUCE_BITWISE, _)
SHMEM_RMA_TYPES(REDUCE_ORDERED, _)
SHMEM_ARITHMETIC_TYPES(REDUCE_ARITHMETIC, _)

#define SCANS(N, T, _)                                                                             \
    static int inscan_##N(shmem_team_t team, void *dest, const void *source, size_t nelems) {      \
        return shmem_##N##_sum_inscan(team, dest, source, nelems);                                 \
    }                                                                                              \
    static int exscan_##N(shmem_team_t team, void *dest, const void *source, size_t nelems) {      \
        return shmem_##N##_sum_exscan(team, dest, source, nelems);                                 \
    }
SHMEM_ARITHMETIC_TYPES(SCANS, _)

#define TO_ALL(N, T, OP)                                                                           \
    static void to_all_##N##_##OP(void *dest, const void *source, int nelems,                      \
                                  const struct active_set *set, void *pwrk) {                      \
        shmem_##N##_##OP##_to_all(dest, source, nelems, set->start, set->log_stride, set->size,    \
                                  pwrk, set->psync);                                               \
    }
#define TO_ALL_BITWISE(N, T, _)    TO_ALL(N, T, and) TO_ALL(N, T, or) TO_ALL(N, T, xor)
#define TO_ALL_ORDERED(N, T, _)    TO_ALL(N, T, max) TO_ALL(N, T, min)
#define TO_ALL_ARITHMETIC(N, T, _) TO_ALL(N, T, sum) TO_ALL(N, T, prod)
SHMEM_TO_ALL_BITWISE_TYPES(TO_ALL_BITWISE, _)
SHMEM_TO_ALL_ORDERED_TYPES(TO_ALL_ORDERED, _)
SHMEM_TO_ALL_ARITHMETIC_TYPES(TO_ALL_ARITHMETIC, _)

#define ROW(N, T, OP, OPERAND, ...)                                                                \
    {#N " " #OP, sizeof(T), VALUE_BYTES(T), .fold = fold_##N##_##OP, .operand = OPERAND,           \
     __VA_ARGS__},
#define REDUCE_ROW(N, T, OP, OPERAND) ROW(N, T, OP, OPERAND, .reduce = reduce_##N##_##OP)
#define TO_ALL_ROW(N, T, OP, OPERAND) ROW(N, T, OP, OPERAND, .to_all = to_all_##N##_##OP)
#define SCAN_ROW(N, T, OP, OPERAND)                                                                \
    ROW(N, T, OP, OPERAND, .inscan = inscan_##N, .exscan = exscan_##N)
#define BITWISE_ROWS(N, T, ONE)                                                                    \
    ONE(N, T, and, NULL) ONE(N, T, or, NULL) ONE(N, T, xor, NULL)
#define INTEGER_ROWS(N, T, ONE)                                                                    \
    ONE(N, T, max, NULL) ONE(N, T, min, NULL) ONE(N, T, sum, NULL) ONE(N, T, prod, NULL)
#define COMPLEX_ROWS(N, T, ONE)                                                                    \
    ONE(N, T, sum, operand_##N##_sum) ONE(N, T, prod, operand_##N##_prod)
#define REAL_ROWS(N, T, ONE)                                                                       \
    ONE(N, T, max, operand_##N##_sum) ONE(N, T, min, operand_##N##_sum) COMPLEX_ROWS(N, T, ONE)
const struct fold_routines reduce_routines[] = {
    SHMEM_BITWISE_TYPES(BITWISE_ROWS, REDUCE_ROW) INTEGERS(INTEGER_ROWS, REDUCE_ROW)
    FLOATS(REAL_ROWS, REDUCE_ROW) SHMEM_COMPLEX(COMPLEX_ROWS, REDUCE_ROW)
};
const struct fold_routines to_all_routines[] = {
    SHMEM_TO_ALL_BITWISE_TYPES(BITWISE_ROWS, TO_ALL_ROW)
    SHMEM_TO_ALL_BITWISE_TYPES(INTEGER_ROWS, TO_ALL_ROW)
    FLOATS(REAL_ROWS, TO_ALL_ROW) SHMEM_COMPLEX(COMPLEX_ROWS, TO_ALL_ROW)
};
#define INTEGER_SCAN(N, T, _) SCAN_ROW(N, T, sum, NULL)
#define REAL_SCAN(N, T, _)    SCAN_ROW(N, T, sum, operand_##N##_sum)
const struct fold_routines scan_routines[] = {
    INTEGERS(INTEGER_SCAN, _) FLOATS(REAL_SCAN, _) SHMEM_COMPLEX(REAL_SCAN, _)
};
/* clang-format on */
const int REDUCE_ROWS = sizeof reduce_routines / sizeof *reduce_routines;
const int SCAN_ROWS = sizeof scan_routines / sizeof *scan_routines;
const int TO_ALL_ROWS = sizeof to_all_routines / sizeof *to_all_routines;
