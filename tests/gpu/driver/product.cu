// SPDX-License-Identifier: BSD-3-Clause
// The kernel of the pretended cuBLASLt, of one thread. It marks its workspace, and traps if another
// kernel changes that meanwhile: two products at a time must not have one workspace.
#include <cmath>
#include <cstring>
#include "fused/cublaslt.h"
#include "number.h"
#include "product.h"

// Without infinities, and with one NaN of either sign.
static double e4m3_value(uint8_t bits) {
    int exponent = bits >> 3 & 15, mantissa = bits & 7;
    double size = (bits & 0x7f) == 0x7f ? NAN
                  : exponent == 0       ? ldexp(mantissa, -9)
                                        : ldexp(8 + mantissa, exponent - 10);
    return bits & 0x80 ? -size : size;
}

static double tf32_value(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits = (bits + 0xfff + (bits >> 13 & 1)) & ~0x1fffu;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static double load(const void *from, uint64_t i, int type, bool narrow) {
    switch (type) {
    case WEFT_LT_R_64F:
        return ((const double *)from)[i];
    case WEFT_LT_R_32F:
        return narrow ? tf32_value(((const float *)from)[i]) : ((const float *)from)[i];
    case WEFT_LT_R_16BF:
        return of_bf16(((const uint16_t *)from)[i]);
    case WEFT_LT_R_8F_E4M3:
        return e4m3_value(((const uint8_t *)from)[i]);
    case WEFT_LT_R_8F_E5M2:
        return of_f16((uint16_t)(((const uint8_t *)from)[i] << 8));
    default:
        return of_f16(((const uint16_t *)from)[i]);
    }
}

// Rounds a number below 2^900 to `bits` of mantissa, and to the multiples of the smallest number:
// adding and subtracting 1.5 * 2^52 units rounds to a unit.
static double round_to(double value, int bits, int least) {
    int exponent;
    if (value == 0 || !std::isfinite(value))
        return value;
    frexp(value, &exponent);
    double large = ldexp(1.5, 52 + (exponent > least ? exponent : least) - bits);
    return copysign(fabs(value) + large - large, value);
}

static uint16_t bf16_bits(double value) {
    float rounded = (float)round_to(value, 8, -125);
    uint32_t bits;
    memcpy(&bits, &rounded, sizeof bits);
    return (uint16_t)(bits >> 16 | (std::isnan(rounded) ? 0x40 : 0));
}

static uint16_t half_bits(double value) {
    double rounded = fabs(round_to(value, 11, -13));
    uint16_t sign = std::signbit(value) ? 0x8000 : 0;
    int exponent;
    if (std::isnan(value))
        return 0x7e00;
    if (rounded > 65504)
        return sign | 0x7c00;
    if (rounded < ldexp(1, -14))
        return sign | (uint16_t)ldexp(rounded, 24);
    frexp(rounded, &exponent);
    return sign | (uint16_t)((exponent + 14) << 10 | ((int)ldexp(rounded, 11 - exponent) & 1023));
}

static void store(void *to, uint64_t i, int type, double value) {
    switch (type) {
    case WEFT_LT_R_64F:
        ((double *)to)[i] = value;
        break;
    case WEFT_LT_R_32F:
        ((float *)to)[i] = (float)value;
        break;
    case WEFT_LT_R_16BF:
        ((uint16_t *)to)[i] = bf16_bits(value);
        break;
    default:
        ((uint16_t *)to)[i] = half_bits(value);
    }
}

static double rounded(double sum, int type) {
    return type == WEFT_LT_R_16BF  ? of_bf16(bf16_bits(sum))
           : type == WEFT_LT_R_16F ? of_f16(half_bits(sum))
                                   : sum;
}

// A product computes so many rows at a time: each sum waits for its own roundings, not for those of
// others.
enum { ROWS = 8 };
typedef double doubles __attribute__((vector_size(ROWS * sizeof(double))));
typedef float floats __attribute__((vector_size(ROWS * sizeof(float))));

// Loads rows from a number on, of which the last ones may be missing.
static void load_rows(doubles *rows, const void *a, const struct product &p, uint64_t number) {
    for (uint64_t i = 0; i < p.k; i++)
        for (uint64_t row = 0; row < ROWS; row++) {
            uint64_t at = p.transposed_a ? (number + row) * p.lda + i : i * p.lda + number + row;
            rows[i][row] = number + row < p.m ? load(a, at, p.type_a, p.narrow) : 0;
        }
}

static void load_col(double *col, const void *b, const struct product &p, uint64_t number) {
    for (uint64_t i = 0; i < p.k; i++)
        col[i] =
            load(b, p.transposed_b ? i * p.ldb + number : number * p.ldb + i, p.type_b, p.narrow);
}

static void dot(doubles *sums, const doubles *rows, const double *col, const struct product &p) {
    doubles sum = {};
    for (uint64_t i = 0; i < p.k; i++) {
        sum += rows[i] * col[i];
        if (p.type_d != WEFT_LT_R_64F)
            sum = __builtin_convertvector(__builtin_convertvector(sum, floats), doubles);
        if (p.rounds && i == p.k / 2)
            for (int row = 0; row < ROWS; row++)
                sum[row] = rounded(sum[row], p.type_d);
    }
    *sums = sum * (p.scale_a ? *p.scale_a : 1) * (p.scale_b ? *p.scale_b : 1);
}

extern "C" __global__ void pretended_product(const void *a, const void *b, void *d, uint64_t *room,
                                             struct product p) {
    doubles *rows = new doubles[p.k], sums;
    double *cols = new double[p.n * p.k];
    __atomic_store_n(room, p.token, __ATOMIC_RELAXED);
    for (uint64_t number = 0; number < p.n; number++)
        load_col(cols + number * p.k, b, p, number);
    for (uint64_t first = 0; first < p.m; first += ROWS) {
        load_rows(rows, a, p, first);
        for (uint64_t number = 0; number < p.n; number++) {
            dot(&sums, rows, cols + number * p.k, p);
            for (uint64_t row = 0; row < ROWS && first + row < p.m; row++)
                store(d, number * p.ldd + first + row, p.type_d, sums[row]);
        }
    }
    delete[] cols;
    delete[] rows;
    if (__atomic_load_n(room, __ATOMIC_RELAXED) != p.token)
        __trap();
}
