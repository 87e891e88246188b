/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernels of llm_layer.cu: a warp for each row, or a thread for each element. */
#ifndef LLM_LAYER_KERNELS_CUH
#define LLM_LAYER_KERNELS_CUH

#include "llm_layer.h"

enum { WARP = 32, WARPS = 8, THREADS = WARP * WARPS };

__device__ static float sum_of_warp(float value) {
    for (int distance = WARP / 2; distance > 0; distance /= 2)
        value += __shfl_xor_sync(0xffffffff, value, distance);
    return value;
}

__device__ static float top_of_warp(float value) {
    for (int distance = WARP / 2; distance > 0; distance /= 2)
        value = fmaxf(value, __shfl_xor_sync(0xffffffff, value, distance));
    return value;
}

__device__ static size_t first_row(void) {
    return blockIdx.x * (size_t)WARPS + threadIdx.x / WARP;
}
__device__ static size_t first_element(void) {
    return blockIdx.x * (size_t)THREADS + threadIdx.x;
}

__global__ void norm(bf16 *y, const bf16 *x, size_t rows, size_t cols) {
    for (size_t row = first_row(); row < rows; row += gridDim.x * (size_t)WARPS) {
        const bf16 *from = x + row * cols;
        float squares = 0;
        for (size_t j = threadIdx.x % WARP; j < cols; j += WARP)
            squares += wide(from[j]) * wide(from[j]);
        float scale = rsqrtf(sum_of_warp(squares) / (float)cols + (float)EPSILON);
        for (size_t j = threadIdx.x % WARP; j < cols; j += WARP)
            y[row * cols + j] = narrow(wide(from[j]) * scale);
    }
}

/* dx = residual + the gradient of norm's x. */
__global__ void norm_back(bf16 *dx, const bf16 *dy, const bf16 *x, const bf16 *residual,
                          size_t rows, size_t cols) {
    for (size_t row = first_row(); row < rows; row += gridDim.x * (size_t)WARPS) {
        size_t at = row * cols;
        float squares = 0, dot = 0;
        for (size_t j = threadIdx.x % WARP; j < cols; j += WARP) {
            squares += wide(x[at + j]) * wide(x[at + j]);
            dot += wide(x[at + j]) * wide(dy[at + j]);
        }
        float scale = rsqrtf(sum_of_warp(squares) / (float)cols + (float)EPSILON);
        float back = sum_of_warp(dot) / (float)cols * scale * scale;
        for (size_t j = threadIdx.x % WARP; j < cols; j += WARP)
            dx[at + j] = narrow(wide(residual[at + j]) +
                                scale * (wide(dy[at + j]) - wide(x[at + j]) * back));
    }
}

/* Rotates the first `heads` heads of each row by their positions; sign -1: backward. */
__global__ void rotate(bf16 *qkv, size_t tokens, size_t heads, size_t dim, size_t cols,
                       float sign) {
    size_t half = dim / 2, count = tokens * heads * half;
    for (size_t i = first_element(); i < count; i += gridDim.x * (size_t)THREADS) {
        size_t pair = i % half, head = i / half % heads, token = i / half / heads;
        float angle = sign * (float)token * powf(10000, -2 * (float)pair / (float)dim);
        bf16 *a = qkv + token * cols + head * dim + pair, *b = a + half;
        float x = wide(*a), y = wide(*b);
        *a = narrow(x * cosf(angle) - y * sinf(angle));
        *b = narrow(x * sinf(angle) + y * cosf(angle));
    }
}

/* Scores to weights: row t has t + 1 of them, and zeros. */
__global__ void softmax(bf16 *p, size_t tokens, float scale) {
    for (size_t row = first_row(); row < tokens; row += gridDim.x * (size_t)WARPS) {
        bf16 *of = p + row * tokens;
        float top = -INFINITY, sum = 0;
        for (size_t j = threadIdx.x % WARP; j <= row; j += WARP)
            top = fmaxf(top, wide(of[j]));
        top = top_of_warp(top);
        for (size_t j = threadIdx.x % WARP; j <= row; j += WARP)
            sum += expf(scale * (wide(of[j]) - top));
        sum = sum_of_warp(sum);
        for (size_t j = threadIdx.x % WARP; j < tokens; j += WARP)
            of[j] = narrow(j <= row ? expf(scale * (wide(of[j]) - top)) / sum : 0);
    }
}

/* Gradients of the weights p to those of the scores. */
__global__ void softmax_back(bf16 *dp, const bf16 *p, size_t tokens, float scale) {
    for (size_t row = first_row(); row < tokens; row += gridDim.x * (size_t)WARPS) {
        bf16 *of = dp + row * tokens;
        const bf16 *weights = p + row * tokens;
        float dot = 0;
        for (size_t j = threadIdx.x % WARP; j <= row; j += WARP)
            dot += wide(of[j]) * wide(weights[j]);
        dot = sum_of_warp(dot);
        for (size_t j = threadIdx.x % WARP; j < tokens; j += WARP)
            of[j] = narrow(j <= row ? scale * wide(weights[j]) * (wide(of[j]) - dot) : 0);
    }
}

/* Rows of gu have `cols` gates, then as many numbers that they weigh. */
__global__ void swiglu(bf16 *a, const bf16 *gu, size_t rows, size_t cols) {
    for (size_t i = first_element(); i < rows * cols; i += gridDim.x * (size_t)THREADS) {
        size_t at = i / cols * 2 * cols + i % cols;
        float gate = wide(gu[at]);
        a[i] = narrow(gate / (1 + expf(-gate)) * wide(gu[at + cols]));
    }
}

__global__ void swiglu_back(bf16 *dgu, const bf16 *da, const bf16 *gu, size_t rows, size_t cols) {
    for (size_t i = first_element(); i < rows * cols; i += gridDim.x * (size_t)THREADS) {
        size_t at = i / cols * 2 * cols + i % cols;
        float gate = wide(gu[at]), up = wide(gu[at + cols]), d = wide(da[i]);
        float part = 1 / (1 + expf(-gate));
        dgu[at] = narrow(d * up * part * (1 + gate * (1 - part)));
        dgu[at + cols] = narrow(d * gate * part);
    }
}

__global__ void add(bf16 *y, const bf16 *x, size_t nelems) {
    for (size_t i = first_element(); i < nelems; i += gridDim.x * (size_t)THREADS)
        y[i] = narrow(wide(y[i]) + wide(x[i]));
}

/* The sum of dense matrices of several heads, to columns of a wider matrix. */
__global__ void sum_heads(bf16 *to, size_t cols, const bf16 *parts, size_t heads, size_t rows,
                          size_t dim) {
    for (size_t i = first_element(); i < rows * dim; i += gridDim.x * (size_t)THREADS) {
        float sum = 0;
        for (size_t head = 0; head < heads; head++)
            sum += wide(parts[head * rows * dim + i]);
        to[i / dim * cols + i % dim] = narrow(sum);
    }
}

/* The gradient of the mean square of out - target over `all` elements; each warp's part of the sum
 * of squares goes to a place of its own. */
__global__ void loss_back(bf16 *dout, float *squares, const bf16 *out, const bf16 *target,
                          size_t nelems, float all) {
    float sum = 0;
    for (size_t i = first_element(); i < nelems; i += gridDim.x * (size_t)THREADS) {
        float distance = wide(out[i]) - wide(target[i]);
        dout[i] = narrow(2 * distance / all);
        sum += distance * distance;
    }
    sum = sum_of_warp(sum);
    if (threadIdx.x % WARP == 0)
        squares[first_row()] = sum;
}

__global__ void descend(bf16 *weights, float *exact, const bf16 *gradient, size_t nelems,
                        float rate) {
    for (size_t i = first_element(); i < nelems; i += gridDim.x * (size_t)THREADS) {
        exact[i] -= rate * wide(gradient[i]);
        weights[i] = narrow(exact[i]);
    }
}

#endif
