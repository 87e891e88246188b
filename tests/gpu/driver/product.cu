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

static void load_row(double *row, const void *a, const struct product &p, uint64_t number) {
    for (uint64_t i = 0; i < p.k; i++)
        row[i] =
            load(a, p.transposed_a ? number * p.lda + i : i * p.lda + number, p.type_a, p.narrow);
}

static void load_col(double *col, const void *b, const struct product &p, uint64_t number) {
    for (uint64_t i = 0; i < p.k; i++)
        col[i] =
            load(b, p.transposed_b ? i * p.ldb + number : number * p.ldb + i, p.type_b, p.narrow);
}

static double dot(const double *row, const double *col, const struct product &p) {
    double sum = 0;
    for (uint64_t i = 0; i < p.k; i++) {
        sum += row[i] * col[i];
        sum = p.type_d == WEFT_LT_R_64F ? sum : (float)sum;
        if (p.rounds && i == p.k / 2)
            sum = rounded(sum, p.type_d);
    }
    return sum * (p.scale_a ? *p.scale_a : 1) * (p.scale_b ? *p.scale_b : 1);
}

extern "C" __global__ void pretended_product(const void *a, const void *b, void *d, uint64_t *room,
                                             struct product p) {
    double *rows = new double[(p.m + 1) * p.k];
    double *right = rows + p.m * p.k;
    __atomic_store_n(room, p.token, __ATOMIC_RELAXED);
    for (uint64_t row = 0; row < p.m; row++)
        load_row(rows + row * p.k, a, p, row);
    for (uint64_t col = 0; col < p.n; col++) {
        load_col(right, b, p, col);
        for (uint64_t row = 0; row < p.m; row++)
            store(d, col * p.ldd + row, p.type_d, dot(rows + row * p.k, right, p));
    }
    delete[] rows;
    if (__atomic_load_n(room, __ATOMIC_RELAXED) != p.token)
        __trap();
}
