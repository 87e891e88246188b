/* SPDX-License-Identifier: BSD-3-Clause */
/* For tests of products by the kernels for Hopper: calls with matrices of BF16 of given shapes,
 * whose rows, or a transposed b's columns, suit the kernels. */
#ifndef TESTS_GPU_FIXED_H
#define TESTS_GPU_FIXED_H

#include "gpu/gather.h"
#include "gpu/reduction.h"

static inline struct placed fixed_factor(size_t rows, size_t cols, bool transposed, uint64_t seed) {
    weft_matrix shape = {NULL, rows, cols, transposed ? rows : cols, WEFT_BF16, transposed};
    struct tensor image = tensor_of(PRIVATE, shape);
    tensor_fill(&image, seed);
    return place(OWN, image);
}

static inline struct placed fixed_result(size_t rows, size_t cols, size_t gap) {
    return place(OWN, tensor_new(PRIVATE, rows, cols, cols + gap, WEFT_BF16));
}

/* Prepares a sum in which each member has `rows` rows; the members' K are in r.depths; `transposed`
 * says that b is. */
static inline void fixed_reduction(uint64_t key, size_t rows, size_t n, size_t gap, bool scatters,
                                   bool transposed) {
    size_t all = rows * (size_t)group.n, k = r.depths[group.me];
    draw_alike(key);
    r.dtype = WEFT_BF16;
    r.op = WEFT_SUM;
    r.roundings = 2; /* the others' parts first, then the own one */
    r.scatters = scatters;
    r.m = all;
    r.n = n;
    suits = true;
    r.a = fixed_factor(all, k, false, seed_of(key, group.me, 0));
    r.b = fixed_factor(k, n, transposed, seed_of(key, group.me, 1));
    r.c = fixed_result(scatters ? rows : all, n, gap);
    suits = false;
}

/* Prepares an all-gather of shards of rows x k elements. */
static inline void fixed_gather(uint64_t key, size_t rows, size_t k, size_t n, size_t gap,
                                bool transposed) {
    draw_alike(key);
    g = (struct gather){.dtype = WEFT_BF16, .rows = rows, .k = k, .nb = 1};
    suits = true;
    g.shard = fixed_factor(rows, k, false, seed_of(key, group.me, 0));
    g.b[0] = fixed_factor(k, n, transposed, seed_of(key, group.me, 1));
    g.c[0] = fixed_result(rows * (size_t)group.n, n, gap);
    suits = false;
}

#endif
