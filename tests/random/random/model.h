/* SPDX-License-Identifier: BSD-3-Clause */
/* The reference: the effect of an operation on the memory of all PEs, one byte after the other, and
 * the results that its actor gets. Operations are applied in the order in which they were drawn. */
#ifndef TESTS_RANDOM_MODEL_H
#define TESTS_RANDOM_MODEL_H

#include "draw.h"

/* The bytes that this PE's landing (draw.h) must have. */
extern unsigned char expected[LANDING_BYTES];
enum { UNTOUCHED = 0xA5 };

struct outcome {
    uint64_t fetched; /* the word's previous value */
};

struct outcome model_apply(struct op *op);
void model_collective(const struct op *op);

#endif
