/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers as kernels fold them: the operations, and words of several numbers. Integers wrap around;
 * min and max return NaN if an operand is NaN. 16-bit floats are folded as floats and rounded once
 * at the end. So results have the bits of the host's folds. */
#ifndef WEFT_COLL_FOLD_CUH
#define WEFT_COLL_FOLD_CUH

#include <math.h>
#include <string.h>
#include "base/gpu.cuh"
#include "coll/narrow.h"
#include "coll/number.h"

/* --- Numbers --------------------------------------------------------------------------------- */

template <class Real> struct weft_complex { Real re, im; };
struct weft_bf16 {
    uint16_t bits;
};
struct weft_f16 {
    uint16_t bits;
};

/* The type in which numbers are folded: their own, or float. */
template <class T> struct weft_folded { typedef T type; };
template <> struct weft_folded<weft_bf16> { typedef float type; };
template <> struct weft_folded<weft_f16> { typedef float type; };

template <class T> WEFT_DEVICE T widen(T a) {
    return a;
}
template <class T> WEFT_DEVICE void narrow(T *to, T a) {
    *to = a;
}
#ifdef __CUDA_ARCH__
WEFT_DEVICE float widen(weft_bf16 a) {
    return __uint_as_float((uint32_t)a.bits << 16);
}
WEFT_DEVICE float widen(weft_f16 a) {
    float wide;
    asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(a.bits));
    return wide;
}
WEFT_DEVICE void narrow(weft_bf16 *to, float a) {
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(to->bits) : "f"(a));
}
WEFT_DEVICE void narrow(weft_f16 *to, float a) {
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(to->bits) : "f"(a));
}
#else
WEFT_DEVICE float widen(weft_bf16 a) {
    return weft_float_of_bf16(a.bits);
}
WEFT_DEVICE float widen(weft_f16 a) {
    return weft_float_of_f16(a.bits);
}
WEFT_DEVICE void narrow(weft_bf16 *to, float a) {
    to->bits = weft_bf16_of_float(a);
}
WEFT_DEVICE void narrow(weft_f16 *to, float a) {
    to->bits = weft_f16_of_float(a);
}
#endif

/* Returns a product that is rounded on every machine, because it cannot be fused with an
 * addition. */
#ifdef __CUDA_ARCH__
WEFT_DEVICE float times(float a, float b) {
    return __fmul_rn(a, b);
}
WEFT_DEVICE double times(double a, double b) {
    return __dmul_rn(a, b);
}
#else
template <class Real> WEFT_DEVICE Real times(Real a, Real b) {
    volatile Real product = a * b;
    return product;
}
#endif

/* Maps infinity to 1 and all other values to 0, with the same sign. */
template <class Real> WEFT_DEVICE Real boxed(Real a) {
    return (Real)copysign(isinf(a) ? (Real)1 : (Real)0, a);
}
template <class Real> WEFT_DEVICE Real without_nan(Real a) {
    return a != a ? (Real)copysign((Real)0, a) : a;
}

/* A complex product with two NaN parts is infinite if a factor is infinite, or if it overflowed
 * (C11, annex G.5.1). */
template <class Real>
WEFT_DEVICE weft_complex<Real> recovered(weft_complex<Real> a, weft_complex<Real> b, bool overflow,
                                         weft_complex<Real> product) {
    bool a_infinite = isinf(a.re) || isinf(a.im), b_infinite = isinf(b.re) || isinf(b.im);
    if (a_infinite) {
        a = {boxed(a.re), boxed(a.im)};
        b = {without_nan(b.re), without_nan(b.im)};
    }
    if (b_infinite) {
        b = {boxed(b.re), boxed(b.im)};
        a = {without_nan(a.re), without_nan(a.im)};
    }
    if (!a_infinite && !b_infinite && !overflow)
        return product;
    if (!a_infinite && !b_infinite) {
        a = {without_nan(a.re), without_nan(a.im)};
        b = {without_nan(b.re), without_nan(b.im)};
    }
    return {(Real)INFINITY * (times(a.re, b.re) - times(a.im, b.im)),
            (Real)INFINITY * (times(a.re, b.im) + times(a.im, b.re))};
}

template <class T> WEFT_DEVICE T sum(T a, T b) {
    return (T)(a + b);
}
template <class Real>
WEFT_DEVICE weft_complex<Real> sum(weft_complex<Real> a, weft_complex<Real> b) {
    return {a.re + b.re, a.im + b.im};
}

/* 1u prevents the promotion of narrow factors to int, which would overflow. */
template <class T> WEFT_DEVICE T product(T a, T b) {
    return (T)(1u * a * b);
}
WEFT_DEVICE float product(float a, float b) {
    return a * b;
}
WEFT_DEVICE double product(double a, double b) {
    return a * b;
}
template <class Real>
WEFT_DEVICE weft_complex<Real> product(weft_complex<Real> a, weft_complex<Real> b) {
    Real rr = times(a.re, b.re), ii = times(a.im, b.im);
    Real ri = times(a.re, b.im), ir = times(a.im, b.re);
    weft_complex<Real> result = {rr - ii, ri + ir};
    if (result.re == result.re || result.im == result.im)
        return result;
    return recovered(a, b, isinf(rr) || isinf(ii) || isinf(ri) || isinf(ir), result);
}

/* Divides numbers of the types that have averages; returns others unchanged. */
template <class T> WEFT_DEVICE T divided(T a, int) {
    return a;
}
WEFT_DEVICE float divided(float a, int divisor) {
    return a / (float)divisor;
}
WEFT_DEVICE double divided(double a, int divisor) {
    return a / (double)divisor;
}
template <class Real> WEFT_DEVICE weft_complex<Real> divided(weft_complex<Real> a, int divisor) {
    return {a.re / (Real)divisor, a.im / (Real)divisor};
}

/* clang-format off */
#define WEFT_FOLD_OPERATION(NAME, VALUE)                                                           \
    struct NAME {                                                                                  \
        template <class T> WEFT_DEVICE T of(T a, T b) { return VALUE; }                            \
        template <class T> WEFT_DEVICE T end(T a, int) { return a; }                               \
    };
WEFT_FOLD_OPERATION(fold_and, (T)(a & b))
WEFT_FOLD_OPERATION(fold_or, (T)(a | b))
WEFT_FOLD_OPERATION(fold_xor, (T)(a ^ b))
WEFT_FOLD_OPERATION(fold_max, b > a || b != b ? b : a)
WEFT_FOLD_OPERATION(fold_min, b < a || b != b ? b : a)
WEFT_FOLD_OPERATION(fold_prod, product(a, b))
#undef WEFT_FOLD_OPERATION
/* clang-format on */

struct fold_sum {
    template <class T> WEFT_DEVICE T of(T a, T b) { return sum(a, b); }
    template <class T> WEFT_DEVICE T end(T a, int divisor) {
        return divisor == 0 ? a : divided(a, divisor);
    }
};

/* The types under the names that the tables of kernels use. */
typedef uint8_t number_u8;
typedef uint16_t number_u16;
typedef uint32_t number_u32;
typedef uint64_t number_u64;
typedef int8_t number_i8;
typedef int16_t number_i16;
typedef int32_t number_i32;
typedef int64_t number_i64;
typedef float number_f32;
typedef double number_f64;
typedef weft_bf16 number_bf16;
typedef weft_f16 number_f16;
typedef weft_complex<float> number_c64;
typedef weft_complex<double> number_c128;

/* --- Words of numbers ------------------------------------------------------------------------ */

struct __attribute__((aligned(16), may_alias)) number_vector {
    uint64_t low, high;
};

/* The numbers of a word, in the type in which they are folded. */
template <class T, class Word> struct weft_unpacked {
    enum { N = sizeof(Word) / sizeof(T) };
    typename weft_folded<T>::type of[N];
};

template <class T, class Word> WEFT_DEVICE weft_unpacked<T, Word> unpack(Word word) {
    weft_unpacked<T, Word> to;
    T numbers[to.N];
    memcpy(numbers, &word, sizeof word);
    WEFT_UNROLL
    for (int k = 0; k < to.N; k++)
        to.of[k] = widen(numbers[k]);
    return to;
}

template <class Operation, class T, class Word>
WEFT_DEVICE Word pack(weft_unpacked<T, Word> from, int divisor) {
    T numbers[from.N];
    Word word;
    WEFT_UNROLL
    for (int k = 0; k < from.N; k++)
        narrow(&numbers[k], Operation::end(from.of[k], divisor));
    memcpy(&word, numbers, sizeof word);
    return word;
}

template <class Operation, class T, class Word>
WEFT_DEVICE void fold_word(weft_unpacked<T, Word> *so_far, Word word) {
    weft_unpacked<T, Word> next = unpack<T>(word);
    WEFT_UNROLL
    for (int k = 0; k < next.N; k++)
        so_far->of[k] = Operation::of(so_far->of[k], next.of[k]);
}

#endif
