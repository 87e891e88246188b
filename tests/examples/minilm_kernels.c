/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: the example's kernels against the same formulas in double precision.
 * PEs: 1 */
#include "../../examples/minilm/kernels.c"
#include "tap.h"
#include <stdlib.h>

enum { TOKENS_MAX = 40, WIDTH = 32, LD = 3 * WIDTH };

static float random_float(void) {
    return (float)rand() / (float)RAND_MAX * 8 - 4;
}

static void fill(float *x, size_t n) {
    for (size_t i = 0; i < n; i++)
        x[i] = random_float();
}

static void test_gelu(void) {
    enum { N = 4096 };
    static float x[N], row[N], sum[N];
    tap_case("gelu is exact to 1e-6 from -12 to 12");
    fill(row, N);
    for (size_t i = 0; i < N; i++) {
        x[i] = (float)i * 24 / N - 12 - row[i];
        sum[i] = x[i] + row[i];
    }
    add_row_gelu(x, 1, N, row);
    for (size_t i = 0; i < N; i++) {
        double expected = sum[i] * (1 + erf(sum[i] / sqrt(2))) / 2;
        EXPECT(fabs(x[i] - expected) < 1e-6, "%g gives %g, not %g", (double)sum[i], (double)x[i],
               expected);
    }
}

static void test_norm(void) {
    enum { ROWS_HERE = 3, COLS = 48 };
    float x[ROWS_HERE][COLS], y[ROWS_HERE][COLS], bias[COLS], gain[COLS], shift[COLS], before[COLS];
    struct norm norm = {gain, shift, 1e-12f};
    fill(&x[0][0], ROWS_HERE * COLS);
    fill(&y[0][0], ROWS_HERE * COLS);
    fill(bias, COLS);
    fill(gain, COLS);
    fill(shift, COLS);
    tap_case("a norm has mean 0 and variance 1 before gain and shift");
    double mean = 0, square = 0;
    for (size_t j = 0; j < COLS; j++) {
        before[j] = x[1][j] + y[1][j] + bias[j];
        mean += before[j] / (double)COLS;
    }
    for (size_t j = 0; j < COLS; j++)
        square += (before[j] - mean) * (before[j] - mean) / COLS;
    add_and_norm(&x[0][0], &y[0][0], bias, ROWS_HERE, COLS, &norm);
    for (size_t j = 0; j < COLS; j++) {
        double expected = (before[j] - mean) / sqrt(square) * gain[j] + shift[j];
        EXPECT(fabs(x[1][j] - expected) < 1e-5, "%zu: %g, not %g", j, (double)x[1][j], expected);
    }
}

/* One row of the definition, in double. */
static void attend_exactly(const float *q, const float *k, const float *v, size_t tokens,
                           double context[WIDTH]) {
    double weights[TOKENS_MAX], sum = 0;
    for (size_t t = 0; t < tokens; t++) {
        double score = 0;
        for (size_t d = 0; d < WIDTH; d++)
            score += (double)q[d] * k[t * LD + d];
        sum += weights[t] = exp(score / sqrt(WIDTH));
    }
    for (size_t d = 0; d < WIDTH; d++) {
        context[d] = 0;
        for (size_t t = 0; t < tokens; t++)
            context[d] += weights[t] / sum * v[t * LD + d];
    }
}

static void test_attention(void) {
    static float q[TOKENS_MAX * LD], k[TOKENS_MAX * LD], v[TOKENS_MAX * LD];
    static float context[(TOKENS_MAX + 1) * LD];
    float *scratch = malloc(attention_scratch(TOKENS_MAX, WIDTH) * sizeof *scratch);
    fill(q, TOKENS_MAX * LD);
    fill(k, TOKENS_MAX * LD);
    fill(v, TOKENS_MAX * LD);
    tap_case("attention is softmax(q k / sqrt width) v at any number of tokens");
    for (size_t tokens = 1; tokens <= TOKENS_MAX; tokens++) {
        fill(context, (TOKENS_MAX + 1) * LD);
        float behind = context[tokens * LD], beside = context[WIDTH];
        attention(q, k, v, context, tokens, WIDTH, LD, scratch);
        EXPECT(context[tokens * LD] == behind && context[WIDTH] == beside,
               "%zu tokens wrote beyond their rows", tokens);
        for (size_t t = 0; t < tokens; t++) {
            double expected[WIDTH];
            attend_exactly(q + t * LD, k, v, tokens, expected);
            for (size_t d = 0; d < WIDTH; d++)
                EXPECT(fabs(context[t * LD + d] - expected[d]) < 1e-5,
                       "%zu of %zu, %zu: %g, not %g", t, tokens, d, (double)context[t * LD + d],
                       expected[d]);
        }
    }
    free(scratch);
}

int main(void) {
    tap_start(0);
    test_gelu();
    test_norm();
    test_attention();
    return tap_finish();
}
