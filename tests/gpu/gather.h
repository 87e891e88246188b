/* SPDX-License-Identifier: BSD-3-Clause */
/* For tests of weft_all_gather_matmul on streams: the matrices of a call, whose elements are drawn
 * from seed_of(key, member, 0) for the shard and seed_of(key, member, 1 + j) for b[j], and the
 * check of all results against double. */
#ifndef TESTS_GPU_GATHER_H
#define TESTS_GPU_GATHER_H

#include "gpu/matrices.h"

static struct gather {
    weft_dtype dtype;
    size_t rows, k, nb;
    struct placed shard, b[NB_MAX], c[NB_MAX], full;
    bool copies;
} g;

static inline void gather_enqueue(void) {
    weft_matrix b[NB_MAX], c[NB_MAX];
    for (size_t j = 0; j < g.nb; j++)
        b[j] = g.b[j].m, c[j] = g.c[j].m;
    done(weft_all_gather_matmul(group.team, &g.shard.m, b, g.nb, c, g.copies ? &g.full.m : NULL,
                                stream()),
         "all_gather_matmul");
}

/* Writes other data to the factors. */
static inline void gather_write(uint64_t key) {
    write_again(&g.shard, seed_of(key, group.me, 0));
    for (size_t j = 0; j < g.nb; j++)
        write_again(&g.b[j], seed_of(key, group.me, 1 + j));
}

static inline void check_product(uint64_t key, size_t j, size_t every) {
    struct placed *c = &g.c[j];
    take_back(c);
    check_around(c, "all_gather_matmul");
    for (size_t i = 0; i < c->m.rows; i++)
        for (size_t col = i % every; col < c->m.cols; col += every) {
            uint64_t a = seed_of(key, (int)(i / g.rows), 0), b = seed_of(key, group.me, 1 + j);
            struct sum sum = dot(g.dtype, g.k, a, i % g.rows, b, col);
            check(c, i, col, sum, bound(g.dtype, sum, g.k, 1), "all_gather_matmul");
        }
}

/* Checks one of `every` elements of each row of the products, and all of a_full. */
static inline void gather_check(uint64_t key, size_t every) {
    gpu_drain(gpu_stream);
    for (size_t j = 0; j < g.nb; j++)
        check_product(key, j, every);
    if (!g.copies)
        return;
    take_back(&g.full);
    check_around(&g.full, "a_full");
    for (size_t i = 0; i < g.full.m.rows; i++)
        for (size_t col = 0; col < g.k; col++) {
            double value = value_at(g.dtype, seed_of(key, (int)(i / g.rows), 0), i % g.rows, col);
            check(&g.full, i, col, (struct sum){value, 0}, 0, "a_full");
        }
}

static inline void gather_free(void) {
    tensor_free(&g.shard.image);
    for (size_t j = 0; j < g.nb; j++)
        tensor_free(&g.b[j].image), tensor_free(&g.c[j].image);
    if (g.copies)
        tensor_free(&g.full.image);
}

#endif
