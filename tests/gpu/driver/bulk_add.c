/* SPDX-License-Identifier: BSD-3-Clause */
#include "bulk_add.h"
#include <math.h>
#include <string.h>

static float float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float of_bf16(uint16_t bits) {
    return float_of((uint32_t)bits << 16);
}

static uint16_t to_bf16(float value) {
    uint32_t bits = bits_of(value);
    if (isnan(value))
        return 0x7fff;
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static float of_f16(uint16_t bits) {
    float sign = bits & 0x8000 ? -1.0f : 1.0f;
    int exponent = bits >> 10 & 31, fraction = bits & 1023;
    if (exponent == 31)
        return fraction ? NAN : sign * INFINITY;
    if (exponent == 0)
        return sign * ldexpf((float)fraction, -24);
    return sign * ldexpf((float)(1024 + fraction), exponent - 25);
}

/* To the nearest, ties to even: in units of the last place, which rintf rounds so. */
static uint16_t to_f16(float value) {
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

static uint16_t sum_f16(uint16_t a, uint16_t b) {
    return to_f16(of_f16(a) + of_f16(b));
}
static uint16_t sum_bf16(uint16_t a, uint16_t b) {
    return to_bf16(of_bf16(a) + of_bf16(b));
}
static uint32_t sum_f32(uint32_t a, uint32_t b) {
    return bits_of(float_of(a) + float_of(b));
}

#define ADD(name, T, sum)                                                             \
    static void add_##name(T *to, T value) {                                          \
        T before = __atomic_load_n(to, __ATOMIC_RELAXED);                             \
        while (!__atomic_compare_exchange_n(to, &before, sum, true, __ATOMIC_RELAXED, \
                                            __ATOMIC_RELAXED))                        \
            continue;                                                                 \
    }
ADD(f16, uint16_t, sum_f16(before, value))
ADD(bf16, uint16_t, sum_bf16(before, value))
ADD(f32, uint32_t, sum_f32(before, value))
ADD(u32, uint32_t, before + value)
ADD(u64, uint64_t, before + value)
#undef ADD

#define EACH(name, T)                                  \
    for (unsigned i = 0; i < bytes / sizeof(T); i++)   \
        add_##name((T *)to + i, ((const T *)from)[i]); \
    break
void bulk_add(enum kernel_bulk kind, void *to, const void *from, unsigned bytes) {
    switch (kind) {
    case KERNEL_BULK_ADD_F32:
        EACH(f32, uint32_t);
    case KERNEL_BULK_ADD_F16:
        EACH(f16, uint16_t);
    case KERNEL_BULK_ADD_BF16:
        EACH(bf16, uint16_t);
    case KERNEL_BULK_ADD_U32:
        EACH(u32, uint32_t);
    case KERNEL_BULK_ADD_U64:
        EACH(u64, uint64_t);
    case KERNEL_BULK_PUT:
        break;
    }
}
#undef EACH
