/* SPDX-License-Identifier: BSD-3-Clause */
/* The reference: what an operation does to the memory of all PEs, one byte after the other, and
 * what its actor gets to see. Operations are applied in the order in which they were drawn. */
#ifndef TESTS_RANDOM_MODEL_H
#define TESTS_RANDOM_MODEL_H

#include "draw.h"

/* What has to be in this PE's landing (draw.h). */
extern unsigned char expected[LANDING_BYTES];
enum { UNTOUCHED = 0xA5 };

struct outcome {
    uint64_t fetched; /* the word before */
};

struct outcome model_apply(struct op *op);
void model_collective(const struct op *op);

#endif
