/* SPDX-License-Identifier: BSD-3-Clause */
/* Converts floats of 8 and 16 bits to floats, and floats to 16 bits, by integer arithmetic: no step
 * depends on hardware that rounds or flushes. Rounds to nearest even; a value that is too large
 * becomes infinite, a NaN remains a NaN. */
#ifndef WEFT_COLL_NARROW_H
#define WEFT_COLL_NARROW_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include "weft/addr.h"

WEFT_ADDR float weft_float_of_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

WEFT_ADDR uint32_t weft_bits_of_float(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* Arithmetic instead of a branch: compilers do not vectorise a branch around float operations. */
WEFT_ADDR uint32_t weft_choose(bool condition, uint32_t yes, uint32_t no) {
    uint32_t mask = -(uint32_t)condition;
    return (yes & mask) | (no & ~mask);
}

WEFT_ADDR float weft_float_of_bf16(uint16_t upper) {
    return weft_float_of_bits((uint32_t)upper << 16);
}

WEFT_ADDR uint16_t weft_bf16_of_float(float value) {
    uint32_t bits = weft_bits_of_float(value);
    uint32_t rounded = bits + 0x7fff + (bits >> 16 & 1);
    uint32_t quiet = bits | 0x400000;
    return (uint16_t)(weft_choose((bits & 0x7fffffff) > 0x7f800000, quiet, rounded) >> 16);
}

/* Moves exponent and mantissa into place and corrects the bias. Infinities are corrected twice;
 * subnormals are renormalised by a subtraction of normal numbers, which is exact even if hardware
 * flushes subnormals. (After F. Giesen's public notes on half floats.) */
WEFT_ADDR float weft_float_of_f16(uint16_t half) {
    uint32_t bits = (uint32_t)(half & 0x7fff) << 13;
    uint32_t normal = bits + (112u << 23), special = bits + (224u << 23);
    uint32_t subnormal = weft_bits_of_float(weft_float_of_bits(bits + (113u << 23)) -
                                            weft_float_of_bits(113u << 23));
    uint32_t magnitude = weft_choose(bits >= 31u << 23, special, normal);
    magnitude = weft_choose(bits < 1u << 23, subnormal, magnitude);
    return weft_float_of_bits(magnitude | (uint32_t)(half & 0x8000) << 16);
}

/* As weft_float_of_f16, for 4 bits of exponent, whose bias is 7. The only NaN has all bits set. */
WEFT_ADDR float weft_float_of_f8e4m3(uint8_t byte) {
    uint32_t bits = (uint32_t)(byte & 0x7f) << 20;
    uint32_t normal = bits + (120u << 23);
    uint32_t subnormal = weft_bits_of_float(weft_float_of_bits(bits + (121u << 23)) -
                                            weft_float_of_bits(121u << 23));
    uint32_t magnitude = weft_choose(bits < 1u << 23, subnormal, normal);
    magnitude = weft_choose(bits == 0x7fu << 20, 0x7fc00000, magnitude);
    return weft_float_of_bits(magnitude | (uint32_t)(byte & 0x80) << 24);
}

WEFT_ADDR float weft_float_of_f8e5m2(uint8_t byte) {
    return weft_float_of_f16((uint16_t)(byte << 8));
}

/* Three ranges of the result: too large or NaN; subnormal, where adding 0.5 makes the hardware
 * round at the right bit; normal, rounded to even by hand. */
WEFT_ADDR uint16_t weft_f16_of_float(float value) {
    uint32_t bits = weft_bits_of_float(value), magnitude = bits & 0x7fffffff;
    uint32_t special = weft_choose(magnitude > 0x7f800000, 0x7e00, 0x7c00);
    uint32_t subnormal =
        weft_bits_of_float(weft_float_of_bits(magnitude) + 0.5f) - weft_bits_of_float(0.5f);
    uint32_t normal = (magnitude - (112u << 23) + 0xfff + (magnitude >> 13 & 1)) >> 13;
    uint32_t half = weft_choose(magnitude < 113u << 23, subnormal, normal);
    half = weft_choose(magnitude >= 143u << 23, special, half);
    return (uint16_t)(half | (bits >> 16 & 0x8000));
}

/* As weft_f16_of_float, for 4 bits of exponent; a value that is too large becomes the largest, 448.
 */
WEFT_ADDR uint8_t weft_f8e4m3_of_float(float value) {
    uint32_t bits = weft_bits_of_float(value), magnitude = bits & 0x7fffffff;
    uint32_t special = weft_choose(magnitude > 0x7f800000, 0x7f, 0x7e);
    uint32_t subnormal =
        weft_bits_of_float(weft_float_of_bits(magnitude) + 16384.0f) - weft_bits_of_float(16384.0f);
    uint32_t normal = (magnitude - (120u << 23) + 0x7ffff + (magnitude >> 20 & 1)) >> 20;
    uint32_t byte = weft_choose(magnitude < 121u << 23, subnormal, normal);
    byte = weft_choose(magnitude > weft_bits_of_float(448.0f), special, byte);
    return (uint8_t)(byte | (bits >> 24 & 0x80));
}

/* Returns the scale of numbers of which this is the greatest magnitude: divided by it, they are at
 * most 448. Not 0, so that zeros can be divided. */
WEFT_ADDR float weft_f8e4m3_scale(float greatest) {
    float least = 1e-10f;
    return (greatest > least ? greatest : least) / 448.0f;
}

#endif
