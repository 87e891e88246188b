/* SPDX-License-Identifier: BSD-3-Clause */
/* The model of reductions: random numbers of every type, and how two of them combine. */
#ifndef TESTS_API_NUMBERS_H
#define TESTS_API_NUMBERS_H

#include <shmem.h>
#include <complex.h>
#include <float.h>
#include <string.h>
#include "api/model.h"

typedef void combination(void *so_far, const void *next);

/* Makes a number of a type: any bits for an integer, and reals of different magnitudes that lose
 * bits when they are added, yet are close enough to one to be multiplied. */
typedef void make(struct random *random, void *element);

static inline uint64_t any_integer(struct random *random) {
    return random_next(random);
}

static inline double any_real(struct random *random) {
    double mantissa = 1 + (double)(random_next(random) >> 11) * 0x1p-53;
    int exponent = (int)random_below(random, 13) - 6;
    double magnitude = exponent < 0 ? mantissa / (1 << -exponent) : mantissa * (1 << exponent);
    return random_below(random, 2) ? magnitude : -magnitude;
}

static inline float complex any_complexf(struct random *random) {
    float real = (float)any_real(random), imaginary = (float)any_real(random);
    return real + imaginary * (float complex)I;
}

static inline double complex any_complexd(struct random *random) {
    double real = any_real(random), imaginary = any_real(random);
    return real + imaginary * I;
}

/* The number of significant bytes of an element. */
#define MEANT(T) \
    (_Generic((T){0}, long double : 1, default : 0) && LDBL_MANT_DIG == 64 ? (size_t)10 : sizeof(T))

/* clang-format off */
#define MAKE(N, T, FROM)                                                                           \
    static inline void make_##N(struct random *random, void *element) {                            \
        T value = (T)FROM(random);                                                                 \
        memcpy(element, &value, sizeof value);                                                     \
    }
#define MAKE_INTEGER(N, T, _) MAKE(N, T, any_integer)
#define MAKE_REAL(N, T, _)    MAKE(N, T, any_real)
SHMEM_AMO_TYPES(MAKE_INTEGER, _)
SHMEM_FIXED_NARROW(MAKE_INTEGER, _)
SHMEM_CHARS(MAKE_INTEGER, _)
SHMEM_SHORTS(MAKE_INTEGER, _)
SHMEM_REALS(MAKE_REAL, _)
MAKE(longdouble, long double, any_real)
MAKE(complexf, float complex, any_complexf)
MAKE(complexd, double complex, any_complexd)

/* Signed integers wrap around: sums and products are made in the unsigned type of most bits. */
#define WIDE(T) _Generic((T){0}, float: (T){0}, double: (T){0}, long double: (T){0},               \
                         float complex: (T){0}, double complex: (T){0}, default: 0ull)
#define COMBINE(NAME, T, VALUE)                                                                    \
    static inline void combine_##NAME(void *so_far, const void *next) {                            \
        T a, b;                                                                                    \
        memcpy(&a, so_far, sizeof a);                                                              \
        memcpy(&b, next, sizeof b);                                                                \
        a = (T)(VALUE);                                                                            \
        memcpy(so_far, &a, sizeof a);                                                              \
    }
#define COMBINE_BITS(N, T, _)                                                                      \
    COMBINE(N##_and, T, a & b) COMBINE(N##_or, T, a | b) COMBINE(N##_xor, T, a ^ b)
SHMEM_AMO_TYPES(COMBINE_BITS, _)
SHMEM_FIXED_NARROW(COMBINE_BITS, _)
SHMEM_CHARS(COMBINE_BITS, _)
SHMEM_SHORTS(COMBINE_BITS, _)
#define COMBINE_ORDER(N, T, _) COMBINE(N##_max, T, a > b ? a : b) COMBINE(N##_min, T, a < b ? a : b)
SHMEM_RMA_TYPES(COMBINE_ORDER, _)
#define COMBINE_VALUES(N, T, _)                                                                    \
    COMBINE(N##_sum, T, (__typeof__(WIDE(T)))a + (__typeof__(WIDE(T)))b)                           \
    COMBINE(N##_prod, T, (__typeof__(WIDE(T)))a * (__typeof__(WIDE(T)))b)
SHMEM_ARITHMETIC_TYPES(COMBINE_VALUES, _)
/* clang-format on */

#endif
