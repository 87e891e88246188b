/* SPDX-License-Identifier: BSD-3-Clause */
/* For tests of weft_matmul_reduce_scatter and weft_matmul_all_reduce on streams: the matrices of a
 * call, whose elements are drawn from seed_of(key, member, 0) for a and seed_of(key, member, 1) for
 * b, and the check of the result against double. */
#ifndef TESTS_GPU_REDUCTION_H
#define TESTS_GPU_REDUCTION_H

#include "gpu/matrices.h"

static struct reduction {
    weft_dtype dtype;
    weft_op op;
    bool scatters;
    size_t m, n;
    size_t depths[64]; /* the members' K */
    int roundings;     /* of the sum of the rounded products */
    struct placed a, b, c;
} r;

static inline void reduce_enqueue(void) {
    done((r.scatters ? weft_matmul_reduce_scatter
                     : weft_matmul_all_reduce)(group.team, &r.a.m, &r.b.m, r.op, &r.c.m, stream()),
         r.scatters ? "matmul_reduce_scatter" : "matmul_all_reduce");
}

static inline struct sum reduced(uint64_t key, size_t i, size_t j, double *error) {
    struct sum all = {0, 0};
    *error = 0;
    for (int member = 0; member < group.n; member++) {
        size_t k = r.depths[member];
        struct sum part = dot(r.dtype, k, seed_of(key, member, 0), i, seed_of(key, member, 1), j);
        *error += bound(r.dtype, part, k, 2);
        all.value += part.value;
        all.size += part.size;
    }
    *error += bound(r.dtype, all, (size_t)group.n, r.roundings);
    if (r.op == WEFT_AVG)
        all.value /= group.n;
    return all;
}

/* Checks one of `every` elements of each row of the result. */
static inline void reduce_check(uint64_t key, size_t every) {
    const char *what = r.scatters ? "matmul_reduce_scatter" : "matmul_all_reduce";
    gpu_drain(gpu_stream);
    take_back(&r.c);
    check_around(&r.c, what);
    size_t first = r.scatters ? r.c.m.rows * (size_t)group.me : 0;
    for (size_t i = 0; i < r.c.m.rows; i++)
        for (size_t j = i % every; j < r.n; j += every) {
            double error;
            struct sum sum = reduced(key, first + i, j, &error);
            check(&r.c, i, j, sum, error, what);
        }
}

static inline void same_bits(void) {
    static uint64_t hash;
    static uint64_t all[64];
    hash = tensor_hash(&r.c.image);
    if (shmem_team_sync(group.team) || shmem_uint64_fcollect(group.team, all, &hash, 1))
        exit(1);
    for (int i = 0; i < group.n; i++)
        EXPECT(all[i] == hash, "matmul_all_reduce has other bits on member %d", i);
}

static inline void reduce_free(void) {
    tensor_free(&r.a.image);
    tensor_free(&r.b.image);
    tensor_free(&r.c.image);
}

#endif
