/* SPDX-License-Identifier: BSD-3-Clause */
/* For tests of matrix products on streams: matrices in all kinds of GPU memory with guard bytes
 * around them, draws that all members or one member make, and what is right. */
#ifndef TESTS_GPU_MATRICES_H
#define TESTS_GPU_MATRICES_H

#include "gpu/on_stream.h"
#include "gpu/own_memory.h"
#include "ops/tensor.h"

enum { POOL_BYTES = 8 << 20, NB_MAX = 3 };
enum kind { HOST, OWN, SYMMETRIC, KINDS };

static struct pool {
    unsigned char *at;
    size_t used;
} pools[KINDS];

static struct group {
    shmem_team_t team;
    int me, n;
} group;

/* --- Matrices on the GPU ---------------------------------------------------------------------- */

/* A matrix in GPU memory, and its image in host memory, both with guard bytes. */
struct placed {
    struct tensor image;
    weft_matrix m;
    unsigned char *at;
};

/* At any alignment that the type allows, or if `suits` is set, at one that suits the library. */
static bool suits;
static inline struct placed place(enum kind kind, struct tensor image) {
    struct placed p = {.image = image, .m = image.m, .at = image.block};
    size_t element = weft_dtype_bytes(image.m.dtype), shift = suits ? 0 : element * random_below(3);
    if (kind == HOST)
        return p;
    struct pool *pool = &pools[kind];
    size_t at = (pool->used + 63) / 64 * 64 + shift;
    pool->used = at + image.bytes;
    if (pool->used > POOL_BYTES)
        exit(1);
    p.at = pool->at + at;
    p.m.data = p.at + GUARD_BYTES;
    gpu_write(p.at, image.block, image.bytes);
    return p;
}

static inline void take_back(struct placed *p) {
    if (p->at != p->image.block)
        gpu_copy(p->image.block, p->at, p->image.bytes);
}

static inline void write_again(struct placed *p, uint64_t seed) {
    tensor_fill(&p->image, seed);
    if (p->at != p->image.block)
        gpu_write(p->at, p->image.block, p->image.bytes);
}

static inline struct placed factor(enum kind kind, size_t rows, size_t cols, weft_dtype dtype,
                                   uint64_t seed) {
    struct tensor image = tensor_factor(PRIVATE, rows, cols, dtype);
    tensor_fill(&image, seed);
    return place(kind, image);
}

static inline struct placed result(size_t rows, size_t cols, weft_dtype dtype) {
    enum kind kind = random_below(2) ? OWN : SYMMETRIC;
    return place(kind, tensor_new(PRIVATE, rows, cols, cols + random_below(2) * 3, dtype));
}

/* --- What is right ---------------------------------------------------------------------------- */

struct sum {
    double value, size; /* of the sum, and of the sum of absolute values */
};

static inline struct sum dot(weft_dtype dtype, size_t k, uint64_t a, size_t i, uint64_t b,
                             size_t j) {
    struct sum sum = {0, 0};
    for (size_t at = 0; at < k; at++) {
        double term = value_at(dtype, a, i, at) * value_at(dtype, b, at, j);
        sum.value += term;
        sum.size += fabs(term);
    }
    return sum;
}

/* Bounds the error of a sum of `terms` products, of rounding it to the type, and of rounding parts
 * of it before. */
static inline double bound(weft_dtype dtype, struct sum sum, size_t terms, int roundings) {
    double add = dtype == WEFT_F64 ? 0x1p-53 : 0x1p-24;
    double rounded = fabs(sum.value) + (roundings - 1) * sum.size;
    return sum.size * (double)terms * add + 1.01 * rounded * dtype_epsilon(dtype) + 0x1p-24;
}

static inline void check(struct placed *c, size_t i, size_t j, struct sum wanted, double error,
                         const char *what) {
    double found = tensor_get(&c->image, i, j);
    EXPECT(fabs(found - wanted.value) <= error, "%s of %s: (%zu, %zu) is %.17g, not %.17g +- %g",
           what, dtype_names[c->m.dtype], i, j, found, wanted.value, error);
}

static inline void check_around(struct placed *c, const char *what) {
    EXPECT(tensor_guarded(&c->image), "%s of %s, %zu x %zu: written beside it", what,
           dtype_names[c->m.dtype], c->m.rows, c->m.cols);
}

static inline void done(int rc, const char *what) {
    EXPECT(rc == 0, "%s: %d: %s", what, rc, weft_last_error());
}

/* --- Draws ------------------------------------------------------------------------------------ */

/* All members draw the same until they draw for themselves. */
static inline void draw_alike(uint64_t key) {
    random_state = mix(gpu_seed + key);
    for (int kind = 0; kind < KINDS; kind++)
        pools[kind].used = 0;
}

static inline void draw_alone(uint64_t key) {
    random_state = mix(mix(gpu_seed + key) + 1 + (uint64_t)group.me);
}

static inline size_t draw_size(size_t most) {
    return random_below(6) == 0 ? random_below(2) : 1 + random_below(most);
}

static inline uint64_t seed_of(uint64_t key, int member, size_t matrix) {
    return key * 1000 + (uint64_t)member * 10 + matrix;
}

static inline weft_stream stream(void) {
    return (weft_stream)gpu_stream;
}

/* --- The test --------------------------------------------------------------------------------- */

/* A test that defines ALGORITHM selects that of collectives: "meet" has small products cut, too. */
static inline void matrices_start(void) {
#ifdef ALGORITHM
    setenv("SHMEMX_ALGORITHM", ALGORITHM, 1);
#endif
    shmem_init();
    gpu_start();
    pools[OWN].at = own_memory(POOL_BYTES);
    pools[SYMMETRIC].at =
        (unsigned char *)allocated(shmemx_malloc(SHMEMX_SPACE_DEVICE, POOL_BYTES));
}

static inline void with_group(shmem_team_t team, const char *name, void (*run)(void)) {
    tap_case(name);
    if (team != SHMEM_TEAM_INVALID) {
        group = (struct group){team, shmem_team_my_pe(team), shmem_team_n_pes(team)};
        run();
    }
    shmem_barrier_all();
}

#endif
