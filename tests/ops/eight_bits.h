/* SPDX-License-Identifier: BSD-3-Clause */
/* Factors of 8 bits, and scales: every PE can compute those of all PEs. */
#ifndef TESTS_OPS_EIGHT_BITS_H
#define TESTS_OPS_EIGHT_BITS_H

#include "ops/tensor.h"

/* Returns values below 2, so that results fit into f16. */
static uint8_t byte_at(weft_dtype dtype, uint64_t seed, size_t i, size_t j) {
    uint8_t byte = (uint8_t)mix(mix(seed * 1000003 + i) + j * 7919);
    return dtype == WEFT_F8E5M2 ? (byte & 0x8f) | 0x30 : byte & 0xbf;
}

static double eight_bits(weft_dtype dtype, uint64_t seed, size_t i, size_t j) {
    uint8_t byte = byte_at(dtype, seed, i, j);
    return element_get(dtype, &byte);
}

static float scale_at(uint64_t seed, size_t i) {
    return 0.25f + (float)(mix(seed * 31 + i) % 1000) / 500;
}

static void fill_eight_bits(struct tensor *t, uint64_t seed) {
    for (size_t i = 0; i < t->m.rows; i++)
        for (size_t j = 0; j < t->m.cols; j++)
            *(uint8_t *)tensor_at(t, i, j) = byte_at(t->m.dtype, seed, i, j);
}

#endif
