/* SPDX-License-Identifier: BSD-3-Clause */
/* The encoder's work on a PE's own numbers between two matmuls: plain C whose inner loops have a
 * fixed number of lanes, so that a compiler turns them into vector instructions. All matrices are
 * row-major floats. */
#ifndef MINILM_KERNELS_H
#define MINILM_KERNELS_H

#include <stddef.h>

enum { LANES = 16 /* columns of every matrix here are a multiple of this */ };

/* Adds one row of `cols` to every row of x. */
void add_row(float *x, size_t rows, size_t cols, const float *row);

/* x = gelu(x + row), gelu(x) = x * (1 + erf(x / sqrt 2)) / 2. */
void add_row_gelu(float *x, size_t rows, size_t cols, const float *row);

/* x = norm(x + y + bias) * gain + shift, norm: mean 0 and variance 1 along each row.
 * y and bias may be NULL: nothing is added. */
struct norm {
    const float *gain, *shift;
    float epsilon;
};
void add_and_norm(float *x, const float *y, const float *bias, size_t rows, size_t cols,
                  const struct norm *norm);

/* One head over one sentence: context = softmax(q k^T / sqrt(width)) v.
 * q, k, v, context: tokens x width with leading dimension ld.
 * scratch: attention_scratch(tokens, width) floats. */
void attention(const float *q, const float *k, const float *v, float *context, size_t tokens,
               size_t width, size_t ld, float *scratch);
size_t attention_scratch(size_t tokens, size_t width);

float dot(const float *x, const float *y, size_t nelems);

#endif
