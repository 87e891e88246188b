/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernels of kernels.h on a GPU: a warp for each row, or for each query of a head. All work is
 * on CUDA's default stream. */
#include "place.h"
#include <cuda_runtime.h>
#include <shmemx.h>

enum { WARP = 32, WARPS = 8, THREADS = WARP * WARPS, TOKENS_MAX = 512, PARTS = 4 };

static cudaError_t failure = cudaSuccess;

static void keep(cudaError_t result) {
    failure = failure != cudaSuccess ? failure : result;
}

/* --- Kernels ---------------------------------------------------------------------------------- */

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

__global__ void add_rows(float *x, size_t nelems, size_t cols, const float *row, bool gelu) {
    for (size_t i = blockIdx.x * (size_t)THREADS + threadIdx.x; i < nelems;
         i += gridDim.x * (size_t)THREADS) {
        float y = x[i] + row[i % cols];
        x[i] = gelu ? 0.5f * y * (1.0f + erff(y * 0.70710678f)) : y;
    }
}

/* A warp for each row. */
__global__ void norm_rows(float *x, const float *y, const float *bias, size_t rows, size_t cols,
                          struct norm norm) {
    size_t row = blockIdx.x * (size_t)WARPS + threadIdx.x / WARP, lane = threadIdx.x % WARP;
    if (row >= rows)
        return;
    x += row * cols;
    float sum = 0, squares = 0;
    for (size_t j = lane; j < cols; j += WARP) {
        x[j] += (y ? y[row * cols + j] : 0) + (bias ? bias[j] : 0);
        sum += x[j];
    }
    float mean = sum_of_warp(sum) / (float)cols;
    for (size_t j = lane; j < cols; j += WARP)
        squares += (x[j] - mean) * (x[j] - mean);
    float scale = rsqrtf(sum_of_warp(squares) / (float)cols + norm.epsilon);
    for (size_t j = lane; j < cols; j += WARP)
        x[j] = (x[j] - mean) * scale * norm.gain[j] + norm.shift[j];
}

/* PARTS blocks for each head of each sentence, a warp for each query. It weighs the keys, a lane
 * every 32nd, and adds up the values, a lane every 32nd column. */
__global__ void attend_heads(struct heads heads) {
    __shared__ float weights[WARPS * TOKENS_MAX];
    float *mine = weights + threadIdx.x / WARP * TOKENS_MAX;
    unsigned lane = threadIdx.x % WARP, part = blockIdx.x % PARTS, number = blockIdx.x / PARTS;
    size_t sentence = number / heads.count, head = number % heads.count;
    size_t first = heads.starts[sentence], tokens = heads.starts[sentence + 1] - first;
    size_t at = (first - heads.starts[0]) * heads.ld + head * heads.width;
    float scale = rsqrtf((float)heads.width);
    for (size_t query = part * WARPS + threadIdx.x / WARP; query < tokens; query += PARTS * WARPS) {
        const float *q = heads.q + at + query * heads.ld;
        float top = -INFINITY, sum = 0;
        for (size_t t = lane; t < tokens; t += WARP) {
            float score = 0;
            for (size_t d = 0; d < heads.width; d++)
                score += q[d] * heads.k[at + t * heads.ld + d];
            mine[t] = score * scale;
            top = fmaxf(top, mine[t]);
        }
        top = top_of_warp(top);
        for (size_t t = lane; t < tokens; t += WARP)
            sum += mine[t] = expf(mine[t] - top);
        sum = sum_of_warp(sum);
        __syncwarp();
        for (size_t d = lane; d < heads.width; d += WARP) {
            float value = 0;
            for (size_t t = 0; t < tokens; t++)
                value += mine[t] * heads.v[at + t * heads.ld + d];
            heads.context[at + query * heads.ld + d] = value / sum;
        }
        __syncwarp();
    }
}

/* --- The place -------------------------------------------------------------------------------- */

static float *floats(size_t nelems) {
    void *data = NULL;
    return cudaMalloc(&data, nelems * sizeof(float)) == cudaSuccess ? (float *)data : NULL;
}

static void release(float *data) {
    keep(cudaFree(data));
}

static void write_floats(float *dest, const float *source, size_t nelems) {
    keep(cudaMemcpy(dest, source, nelems * sizeof *dest, cudaMemcpyHostToDevice));
}

static void read_floats(float *dest, const float *source, size_t nelems) {
    keep(cudaMemcpy(dest, source, nelems * sizeof *dest, cudaMemcpyDeviceToHost));
}

static unsigned blocks_for(size_t nelems, size_t each) {
    return (unsigned)((nelems + each - 1) / each);
}

static void add_and_maybe_gelu(float *x, size_t rows, size_t cols, const float *row, bool gelu) {
    if (rows * cols == 0)
        return;
    unsigned blocks = blocks_for(rows * cols, 4 * THREADS);
    add_rows<<<blocks, THREADS>>>(x, rows * cols, cols, row, gelu);
    keep(cudaGetLastError());
}

static void gpu_add_row(float *x, size_t rows, size_t cols, const float *row) {
    add_and_maybe_gelu(x, rows, cols, row, false);
}

static void gpu_add_row_gelu(float *x, size_t rows, size_t cols, const float *row) {
    add_and_maybe_gelu(x, rows, cols, row, true);
}

static void gpu_add_and_norm(float *x, const float *y, const float *bias, size_t rows, size_t cols,
                             const struct norm *norm) {
    if (rows == 0)
        return;
    norm_rows<<<blocks_for(rows, WARPS), THREADS>>>(x, y, bias, rows, cols, *norm);
    keep(cudaGetLastError());
}

/* The copy of the starts in GPU memory, with room for all sentences of a batch. */
static void attend(const struct heads *heads) {
    static size_t *starts, room;
    if (heads->sentences == 0)
        return;
    if (room < heads->sentences + 1) {
        keep(cudaFree(starts));
        room = 2 * (heads->sentences + 1);
        keep(cudaMalloc((void **)&starts, room * sizeof *starts));
    }
    keep(cudaMemcpyAsync(starts, heads->starts, (heads->sentences + 1) * sizeof *starts,
                         cudaMemcpyHostToDevice, NULL));
    struct heads there = *heads;
    there.starts = starts;
    unsigned blocks = (unsigned)(heads->sentences * heads->count * PARTS);
    attend_heads<<<blocks, THREADS>>>(there);
    keep(cudaGetLastError());
}

static const char *error(void) {
    return failure == cudaSuccess ? NULL : cudaGetErrorString(failure);
}

const struct place *gpu_place(void) {
    static const struct place place = {
        true,         TOKENS_MAX,  NULL,        floats,           release,
        write_floats, read_floats, gpu_add_row, gpu_add_row_gelu, gpu_add_and_norm,
        attend,       error};
    int count = 0, device = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0 || shmemx_device(&device) != 0)
        return NULL;
    keep(cudaSetDevice(device));
    return &place;
}
