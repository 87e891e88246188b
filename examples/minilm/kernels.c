/* SPDX-License-Identifier: BSD-3-Clause */
/* The pointwise and attention kernels. Sums run over LANES partial sums, so that a compiler can
 * vectorise them without reordering floating-point operations. */
#include "kernels.h"
#include <math.h>
#include <stdint.h>
#include <string.h>

/* On x86-64 gcc compiles each kernel three times, and the loader selects the best version for the
 * processor. Sanitizers do not support the resolver that selects; clang 14 gives it a name that
 * other files do not find. */
#if defined __x86_64__ && defined __gnu_linux__ && !defined __clang__ && \
    !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__
#define KERNEL __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define KERNEL
#endif
#define INLINE static inline __attribute__((always_inline))

enum { ROWS = 4 /* of a tile: as many as keep their sums in registers */ };

/* e^x for x <= 0, relative error below 2e-7: 2^n times a polynomial on [-ln2/2, ln2/2] (Cephes). */
INLINE float exp_nonpositive(float x) {
    const float magic = 0x1.8p23f; /* adding it rounds to an integer in the low bits */
    x = x < -87.0f ? -87.0f : x;
    float shifted = x * 0x1.715476p0f + magic, n = shifted - magic, power;
    float r = x - n * 0x1.62e4p-1f - n * 0x1.7f7d1cp-20f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    uint32_t bits;
    memcpy(&bits, &shifted, sizeof bits);
    bits = (bits + 127) << 23; /* the bits of `magic` are shifted out at the top */
    memcpy(&power, &bits, sizeof power);
    return p * power;
}

/* erf(x), absolute error below 3e-7: Abramowitz and Stegun 7.1.26. */
INLINE float error_function(float x) {
    float magnitude = fabsf(x), t = 1.0f / (1.0f + 0.3275911f * magnitude);
    float p = 1.061405429f;
    p = p * t - 1.453152027f;
    p = p * t + 1.421413741f;
    p = p * t - 0.284496736f;
    p = p * t + 0.254829592f;
    return copysignf(1.0f - p * t * exp_nonpositive(-x * x), x);
}

KERNEL void add_row(float *x, size_t rows, size_t cols, const float *row) {
    for (; rows--; x += cols)
        for (size_t j = 0; j < cols; j++)
            x[j] += row[j];
}

KERNEL void add_row_gelu(float *x, size_t rows, size_t cols, const float *row) {
    for (; rows--; x += cols)
        for (size_t j = 0; j < cols; j += LANES)
            for (size_t l = j; l < j + LANES; l++) {
                float y = x[l] + row[l];
                x[l] = 0.5f * y * (1.0f + error_function(y * 0x1.6a09e6p-1f));
            }
}

INLINE float sum_of(const float lanes[LANES]) {
    float sum = 0;
    for (size_t l = 0; l < LANES; l++)
        sum += lanes[l];
    return sum;
}

/* Sum of (x - centre)^power for power 1 or 2. */
INLINE float moment(const float *x, size_t n, float centre, int power) {
    float sums[LANES] = {0};
    for (size_t j = 0; j < n; j += LANES)
        for (size_t l = 0; l < LANES; l++) {
            float d = x[j + l] - centre;
            sums[l] += power == 2 ? d * d : d;
        }
    return sum_of(sums);
}

KERNEL void add_and_norm(float *x, const float *y, const float *bias, size_t rows, size_t cols,
                         const struct norm *norm) {
    for (; rows--; x += cols, y = y ? y + cols : y) {
        for (size_t j = 0; y && j < cols; j++)
            x[j] += y[j];
        for (size_t j = 0; bias && j < cols; j++)
            x[j] += bias[j];
        float mean = moment(x, cols, 0, 1) / (float)cols;
        float variance = moment(x, cols, mean, 2) / (float)cols;
        float scale = 1.0f / sqrtf(variance + norm->epsilon);
        for (size_t j = 0; j < cols; j++)
            x[j] = (x[j] - mean) * scale * norm->gain[j] + norm->shift[j];
    }
}

KERNEL float dot(const float *x, const float *y, size_t nelems) {
    float sums[LANES] = {0};
    for (size_t j = 0; j < nelems; j += LANES)
        for (size_t l = 0; l < LANES; l++)
            sums[l] += x[j + l] * y[j + l];
    return sum_of(sums);
}

/* LANES floats as one value: sums of this type stay in registers with every compiler. */
typedef float vector __attribute__((vector_size(LANES * sizeof(float))));

/* c = a b for 1 to ROWS rows of a. a: rows x depth, b: depth x cols. Always computes ROWS rows,
 * repeating the last one if there are fewer, so that the loop has no branches. */
INLINE void tile(size_t rows, const float *restrict a, size_t a_ld, const float *restrict b,
                 size_t b_ld, float *restrict c, size_t c_ld, size_t depth, size_t cols) {
    const float *a1 = a + (rows > 1 ? a_ld : 0), *a2 = a1 + (rows > 2 ? a_ld : 0);
    const float *a3 = a2 + (rows > 3 ? a_ld : 0);
    for (size_t j = 0; j < cols; j += LANES) {
        vector sums[ROWS] = {{0}}, line;
        for (size_t k = 0; k < depth; k++) {
            memcpy(&line, &b[k * b_ld + j], sizeof line);
            sums[0] += a[k] * line;
            sums[1] += a1[k] * line;
            sums[2] += a2[k] * line;
            sums[3] += a3[k] * line;
        }
        for (size_t i = 0; i < rows; i++)
            memcpy(&c[i * c_ld + j], &sums[i], sizeof sums[i]);
    }
}

/* A row of scores to weights that add up to 1; the padding behind `n` gets weight 0. */
INLINE void softmax(float *scores, size_t n, size_t padded, float scale) {
    float tops[LANES], sums[LANES] = {0};
    for (size_t t = n; t < padded; t++)
        scores[t] = -INFINITY;
    memcpy(tops, scores, sizeof tops);
    for (size_t j = 0; j < padded; j += LANES)
        for (size_t l = 0; l < LANES; l++)
            tops[l] = tops[l] > scores[j + l] ? tops[l] : scores[j + l];
    float top = tops[0];
    for (size_t l = 1; l < LANES; l++)
        top = top > tops[l] ? top : tops[l];
    for (size_t j = 0; j < padded; j += LANES)
        for (size_t l = 0; l < LANES; l++)
            sums[l] += scores[j + l] = exp_nonpositive((scores[j + l] - top) * scale);
    float share = 1.0f / sum_of(sums);
    for (size_t j = 0; j < padded; j++)
        scores[j] *= share;
}

static size_t padded_to_lanes(size_t n) {
    return (n + LANES - 1) / LANES * LANES;
}

size_t attention_scratch(size_t tokens, size_t width) {
    return (width + ROWS) * padded_to_lanes(tokens);
}

/* k transposed, padded with zeros: then scores are computed LANES keys at a time. */
INLINE void transpose(const float *restrict k, size_t ld, float *restrict keys, size_t tokens,
                      size_t padded, size_t width) {
    for (size_t d = 0; d < width; d++)
        for (size_t t = 0; t < padded; t++)
            keys[d * padded + t] = t < tokens ? k[t * ld + d] : 0;
}

INLINE void attend(size_t rows, const float *q, const float *keys, const float *v, float *context,
                   size_t tokens, size_t width, size_t ld, float *scores) {
    size_t padded = padded_to_lanes(tokens);
    tile(rows, q, ld, keys, padded, scores, padded, width, padded);
    for (size_t i = 0; i < rows; i++)
        softmax(scores + i * padded, tokens, padded, 1.0f / sqrtf((float)width));
    tile(rows, scores, padded, v, ld, context, ld, tokens, width);
}

KERNEL void attention(const float *q, const float *k, const float *v, float *context, size_t tokens,
                      size_t width, size_t ld, float *scratch) {
    size_t padded = padded_to_lanes(tokens);
    float *keys = scratch, *scores = scratch + width * padded;
    transpose(k, ld, keys, tokens, padded, width);
    for (size_t t = 0; t < tokens; t += ROWS)
        attend(tokens - t < ROWS ? tokens - t : ROWS, q + t * ld, keys, v, context + t * ld, tokens,
               width, ld, scores);
}
