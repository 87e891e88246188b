/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers of 16 bits: their values as floats, and floats rounded to them. */
#ifndef TESTS_GPU_DRIVER_NUMBER_H
#define TESTS_GPU_DRIVER_NUMBER_H

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline float float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float of_bf16(uint16_t bits) {
    return float_of((uint32_t)bits << 16);
}

static inline uint16_t to_bf16(float value) {
    uint32_t bits = bits_of(value);
    if (isnan(value))
        return 0x7fff;
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* With the same bits of exponent and fraction a float is 2^-112 times the number. */
static inline float of_f16(uint16_t bits) {
    float size = float_of((uint32_t)(bits & 0x7fff) << 13) * 0x1p112f;
    if ((bits & 0x7c00) == 0x7c00)
        size = bits & 0x3ff ? NAN : INFINITY;
    return bits & 0x8000 ? -size : size;
}

/* To the nearest, ties to even: in units of the last place, which rintf rounds so. */
static inline uint16_t to_f16(float value) {
    uint16_t sign = signbit(value) ? 0x8000 : 0;
    float size = fabsf(value);
    int exponent;
    if (isnan(value))
        return 0x7fff;
    if (size == 0.0f)
        return sign;
    if (size >= 65520.0f)
        return sign | 0x7c00;
    frexpf(size, &exponent);
    int unit = exponent < -13 ? -24 : exponent - 11;
    int units = (int)rintf(ldexpf(size, -unit)); /* 1024 to 2048, or fewer below all exponents */
    return (uint16_t)(sign | (units + ((unit + 24) << 10)));
}

#endif
