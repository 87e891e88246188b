/* SPDX-License-Identifier: BSD-3-Clause */
/* The sizes and the data of llm_layer.cu, and the layer in double on the host, which the results of
 * a small one are compared with. */
#ifndef LLM_LAYER_H
#define LLM_LAYER_H

#include <math.h>
#include <vector>
#include "example.h"

#define EPSILON 1e-5

struct bf16 {
    uint16_t bits;
};

__host__ __device__ static inline float wide(bf16 value) {
    uint32_t bits = (uint32_t)value.bits << 16;
    float result;
    memcpy(&result, &bits, sizeof result);
    return result;
}

__host__ __device__ static inline bf16 narrow(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits += 0x7fff + (bits >> 16 & 1);
    return {(uint16_t)(bits >> 16)};
}

/* A layer with `heads` query heads and `kv_heads` heads of keys and values, and PE `me` of n, which
 * has a part of the heads, of the columns between the MLP's products, and of the tokens. */
struct sizes {
    size_t tokens, hidden, heads, kv_heads, dim, ffn;
    size_t n, me;

    size_t rows() const { return tokens / n; }
    size_t own_heads() const { return heads / n; }
    size_t own_kv_heads() const { return kv_heads / n; }
    size_t own_ffn() const { return ffn / n; }
    size_t qkv_cols() const { return (own_heads() + 2 * own_kv_heads()) * dim; }
    size_t o_cols() const { return own_heads() * dim; }
};

/* --- Data: functions of a seed, so that each PE knows all of them ----------------------------- */

enum tensor { X, TARGET, QKV, O, GATE_UP, DOWN, TENSORS };

/* Returns element (row, col) of a whole matrix. Weights are [outputs x inputs]. */
static inline float element_of(const sizes &s, uint64_t seed, tensor which, size_t row,
                               size_t col) {
    size_t inputs[TENSORS] = {s.hidden, s.hidden, s.hidden, s.heads * s.dim, s.hidden, s.ffn};
    float scale = which < QKV ? 1 : sqrtf(3 / (float)inputs[which]);
    uint64_t number = row * inputs[which] + col;
    return wide(narrow(scale * example_float(seed + 1000 * (uint64_t)which, number)));
}

/* Returns the row of the whole matrix that is row r of this PE's part. A PE's rows of QKV are those
 * of its queries, keys and values; its rows of GATE_UP are gates, then the others. */
static inline size_t whole_row(const sizes &s, tensor which, size_t r) {
    size_t q = s.own_heads() * s.dim, kv = s.own_kv_heads() * s.dim, all = s.kv_heads * s.dim;
    if (which == X || which == TARGET)
        return s.me * s.rows() + r;
    if (which == GATE_UP)
        return r < s.own_ffn() ? s.me * s.own_ffn() + r
                               : s.ffn + s.me * s.own_ffn() + r - s.own_ffn();
    if (which != QKV)
        return r;
    if (r < q)
        return s.me * q + r;
    size_t keys = s.heads * s.dim;
    return r < q + kv ? keys + s.me * kv + r - q : keys + all + s.me * kv + r - q - kv;
}

static inline size_t whole_col(const sizes &s, tensor which, size_t c) {
    return which == O ? s.me * s.o_cols() + c : which == DOWN ? s.me * s.own_ffn() + c : c;
}

/* --- The layer in double ---------------------------------------------------------------------- */

typedef std::vector<double> numbers;

struct reference {
    sizes s;
    numbers of[TENSORS];
};

static inline reference reference_of(const sizes &s, uint64_t seed) {
    size_t rows[TENSORS] = {s.tokens, s.tokens,  (s.heads + 2 * s.kv_heads) * s.dim,
                            s.hidden, 2 * s.ffn, s.hidden};
    size_t cols[TENSORS] = {s.hidden, s.hidden, s.hidden, s.heads * s.dim, s.hidden, s.ffn};
    reference all = {s, {}};
    for (int which = 0; which < TENSORS; which++)
        for (size_t i = 0; i < rows[which] * cols[which]; i++)
            all.of[which].push_back(
                element_of(s, seed, (tensor)which, i / cols[which], i % cols[which]));
    return all;
}

/* Returns x (rows x inputs) times the transposed weights. */
static inline numbers times(const numbers &x, const numbers &weights, size_t rows, size_t inputs) {
    size_t outputs = weights.size() / inputs;
    numbers y(rows * outputs);
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < outputs; j++)
            for (size_t k = 0; k < inputs; k++)
                y[i * outputs + j] += x[i * inputs + k] * weights[j * inputs + k];
    return y;
}

static inline numbers norm_of(const numbers &x, size_t cols) {
    numbers y(x.size());
    for (size_t i = 0; i < x.size(); i += cols) {
        double squares = 0;
        for (size_t j = 0; j < cols; j++)
            squares += x[i + j] * x[i + j];
        for (size_t j = 0; j < cols; j++)
            y[i + j] = x[i + j] / sqrt(squares / (double)cols + EPSILON);
    }
    return y;
}

static inline void rotate_heads(numbers &qkv, const sizes &s, size_t cols) {
    for (size_t t = 0; t < s.tokens; t++)
        for (size_t head = 0; head < s.heads + s.kv_heads; head++)
            for (size_t i = 0; i < s.dim / 2; i++) {
                double angle = (double)t * pow(10000, -2 * (double)i / (double)s.dim);
                double *a = &qkv[t * cols + head * s.dim + i], *b = a + s.dim / 2, was = *a;
                *a = was * cos(angle) - *b * sin(angle);
                *b = was * sin(angle) + *b * cos(angle);
            }
}

/* The result of one query of a head. */
static inline void attend_query(numbers &o, const numbers &qkv, const sizes &s, size_t cols,
                                size_t head, size_t t) {
    size_t key = s.heads + head / (s.heads / s.kv_heads), value = key + s.kv_heads;
    numbers weights(t + 1);
    double sum = 0;
    for (size_t u = 0; u <= t; u++) {
        double score = 0;
        for (size_t i = 0; i < s.dim; i++)
            score += qkv[t * cols + head * s.dim + i] * qkv[u * cols + key * s.dim + i];
        sum += weights[u] = exp(score / sqrt((double)s.dim));
    }
    for (size_t u = 0; u <= t; u++)
        for (size_t i = 0; i < s.dim; i++)
            o[(t * s.heads + head) * s.dim + i] +=
                weights[u] / sum * qkv[u * cols + value * s.dim + i];
}

static inline numbers reference_forward(const reference &r) {
    const sizes &s = r.s;
    size_t cols = (s.heads + 2 * s.kv_heads) * s.dim;
    numbers qkv = times(norm_of(r.of[X], s.hidden), r.of[QKV], s.tokens, s.hidden);
    numbers o(s.tokens * s.heads * s.dim), a(s.tokens * s.ffn);
    rotate_heads(qkv, s, cols);
    for (size_t i = 0; i < s.tokens * s.heads; i++)
        attend_query(o, qkv, s, cols, i % s.heads, i / s.heads);
    numbers x = times(o, r.of[O], s.tokens, s.heads * s.dim);
    for (size_t i = 0; i < x.size(); i++)
        x[i] += r.of[X][i];
    numbers gu = times(norm_of(x, s.hidden), r.of[GATE_UP], s.tokens, s.hidden);
    for (size_t i = 0; i < a.size(); i++) {
        double gate = gu[i / s.ffn * 2 * s.ffn + i % s.ffn];
        a[i] = gate / (1 + exp(-gate)) * gu[i / s.ffn * 2 * s.ffn + s.ffn + i % s.ffn];
    }
    numbers y = times(a, r.of[DOWN], s.tokens, s.ffn);
    for (size_t i = 0; i < y.size(); i++)
        y[i] += x[i];
    return y;
}

/* The mean of the squared distances from the target. */
static inline double reference_loss(const reference &r) {
    numbers y = reference_forward(r);
    double sum = 0;
    for (size_t i = 0; i < y.size(); i++)
        sum += (y[i] - r.of[TARGET][i]) * (y[i] - r.of[TARGET][i]);
    return sum / (double)y.size();
}

/* The gradient of one weight, as a difference. */
static inline double reference_gradient(reference &r, tensor which, size_t i) {
    const double step = 1e-4, was = r.of[which][i];
    r.of[which][i] = was + step;
    double above = reference_loss(r);
    r.of[which][i] = was - step;
    double below = reference_loss(r);
    r.of[which][i] = was;
    return (above - below) / (2 * step);
}

#endif
