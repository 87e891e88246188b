/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints a hash of all members' results of each operator, for tests/ops/bits.t, which compares the
 * hashes of jobs whose PEs are near and far. PEs: none */
#include <unistd.h>
#include "ops/tensor.h"

enum { PES_MAX = 8 };

static int me, npes;
static uint64_t hashes[PES_MAX];

/* Prints one line with the hash of all members' results. */
static void tell(const char *what, weft_dtype dtype, enum memory memory, int error, uint64_t hash) {
    EXPECT(error == 0, "%s: %d: %s", what, error, weft_last_error());
    shmem_uint64_p(&hashes[me], hash, 0);
    shmem_barrier_all();
    uint64_t all = 0;
    for (int pe = 0; pe < npes; pe++)
        all = mix(all + hashes[pe]);
    if (me == 0)
        printf("%s %s memory %d: %016llx\n", what, dtype_names[dtype], (int)memory,
               (unsigned long long)all);
    shmem_barrier_all();
}

static struct tensor filled_as(enum memory memory, weft_matrix shape, uint64_t seed) {
    struct tensor t = tensor_of(memory, shape);
    if (weft_dtype_bytes(shape.dtype) > 1)
        tensor_fill(&t, seed);
    for (size_t i = 0; i < shape.rows && weft_dtype_bytes(shape.dtype) == 1; i++)
        for (size_t j = 0; j < shape.cols; j++) /* neither infinity nor NaN in both types */
            *(uint8_t *)tensor_at(&t, i, j) = (uint8_t)(mix(seed * 31 + i * shape.cols + j) & 0xbf);
    return t;
}

static struct tensor filled(enum memory memory, size_t rows, size_t cols, size_t ld,
                            weft_dtype dtype, uint64_t seed) {
    return filled_as(memory, (weft_matrix){NULL, rows, cols, ld, dtype, false}, seed);
}

/* The factors that are transposed. */
static enum { NO_FACTOR, SOME_A, EVERY_B, BOTH } transposed;

/* Returns a factor of this PE, with a gap after each line. */
static struct tensor factor(enum memory memory, size_t rows, size_t cols, size_t gap,
                            weft_dtype dtype, bool is_b, uint64_t seed) {
    bool turned = is_b ? transposed & EVERY_B : transposed & SOME_A && me % 2 == 0;
    size_t ld = (turned ? rows : cols) + gap;
    return filled_as(memory, (weft_matrix){NULL, rows, cols, ld, dtype, turned}, seed);
}

/* Returns the rows of a member's shard: ragged; one shard is empty. */
static size_t shard_rows(int pe, size_t rows) {
    return pe == 1 ? 0 : rows - (size_t)pe * 3;
}

static size_t rows_of_all(size_t rows) {
    size_t all = 0;
    for (int pe = 0; pe < npes; pe++)
        all += shard_rows(pe, rows);
    return all;
}

/* --- All-gather ------------------------------------------------------------------------------ */

static size_t depth = 48; /* columns of A */

static uint64_t gather(const char *what, weft_dtype dtype, enum memory memory, size_t rows,
                       size_t cols, bool want_full) {
    tensors_reset();
    size_t all = rows_of_all(rows), mine = shard_rows(me, rows), gap = memory == HEAP ? 0 : 5;
    struct tensor shard = factor(memory, mine, depth, gap, dtype, false, (uint64_t)me);
    struct tensor b = factor(PRIVATE, depth, cols, 0, dtype, true, 91);
    struct tensor c = tensor_new(PRIVATE, all, cols, cols, dtype);
    struct tensor full = tensor_new(PRIVATE, want_full ? all : 0, depth, depth, dtype);
    int error = weft_all_gather_matmul(SHMEM_TEAM_WORLD, &shard.m, &b.m, 1, &c.m,
                                       want_full ? &full.m : NULL, WEFT_STREAM_HOST);
    uint64_t hash = tensor_hash(&c) + (want_full ? tensor_hash(&full) : 0);
    tell(what, dtype, memory, error, hash);
    tensor_free(&shard);
    tensor_free(&b);
    tensor_free(&c);
    tensor_free(&full);
    return hash;
}

/* A product that is made while a member is missing has the same bits as one with all members
 * present. */
static void gather_late(weft_dtype dtype) {
    enum { ROWS = 600, COLS = 300, LATE_US = 20000 };
    size_t before = depth;
    depth = 300;
    uint64_t hash = gather("all are there", dtype, PRIVATE, ROWS, COLS, false);
    if (me == npes - 1)
        usleep(LATE_US);
    uint64_t late = gather("one is late", dtype, PRIVATE, ROWS, COLS, false);
    depth = before;
    EXPECT(late == hash, "%s: %016llx, and with a late member %016llx", dtype_names[dtype],
           (unsigned long long)hash, (unsigned long long)late);
}

static void gather_scaled(enum memory memory, size_t rows, size_t cols, weft_dtype out) {
    enum { K = 40 };
    tensors_reset();
    size_t all = rows_of_all(rows), mine = shard_rows(me, rows);
    struct tensor shard = factor(memory, mine, K, 0, WEFT_F8E4M3, false, (uint64_t)me);
    struct tensor a_scale = filled(memory, mine, 1, 1, WEFT_F32, (uint64_t)me + 7);
    struct tensor b = factor(PRIVATE, K, cols, 0, WEFT_F8E4M3, true, 92);
    struct tensor b_scale = filled(PRIVATE, 1, cols, cols, WEFT_F32, 93);
    struct tensor c = tensor_new(PRIVATE, all, cols, cols, out);
    int error = weft_all_gather_scaled_matmul(SHMEM_TEAM_WORLD, &shard.m, &a_scale.m, &b.m,
                                              &b_scale.m, 1, NULL, &c.m, NULL, WEFT_STREAM_HOST);
    tell("all_gather_scaled_matmul", out, memory, error, tensor_hash(&c));
    tensor_free(&shard);
    tensor_free(&a_scale);
    tensor_free(&b);
    tensor_free(&b_scale);
    tensor_free(&c);
}

/* --- Sums ------------------------------------------------------------------------------------ */

static void reduce(weft_dtype dtype, enum memory memory, size_t m, size_t n, size_t k) {
    tensors_reset();
    size_t first = (size_t)me * m / (size_t)npes, end = (size_t)(me + 1) * m / (size_t)npes;
    struct tensor a = factor(PRIVATE, m, k, 0, dtype, false, (uint64_t)me * 2);
    struct tensor b = factor(PRIVATE, k, n, 0, dtype, true, (uint64_t)me * 2 + 1);
    struct tensor c = tensor_new(memory, m, n, n + (memory == STATICS), dtype);
    struct tensor part = tensor_new(PRIVATE, end - first, n, n, dtype);
    int error = weft_matmul_reduce_scatter(SHMEM_TEAM_WORLD, &a.m, &b.m, WEFT_SUM, &part.m,
                                           WEFT_STREAM_HOST);
    tell("matmul_reduce_scatter", dtype, memory, error, tensor_hash(&part));
    error = weft_matmul_all_reduce(SHMEM_TEAM_WORLD, &a.m, &b.m, WEFT_AVG, &c.m, WEFT_STREAM_HOST);
    tell("matmul_all_reduce", dtype, memory, error, tensor_hash(&c));
    tensor_free(&a);
    tensor_free(&b);
    tensor_free(&c);
    tensor_free(&part);
}

static void reduce_scaled(weft_dtype out, size_t m, size_t n, size_t k) {
    tensors_reset();
    size_t first = (size_t)me * m / (size_t)npes, end = (size_t)(me + 1) * m / (size_t)npes;
    struct tensor a = factor(PRIVATE, m, k, 0, WEFT_F8E5M2, false, (uint64_t)me * 2);
    struct tensor b = factor(PRIVATE, k, n, 0, WEFT_F8E4M3, true, (uint64_t)me * 2 + 1);
    struct tensor a_scale = filled(PRIVATE, m, 1, 1, WEFT_F32, (uint64_t)me + 3);
    struct tensor b_scale = filled(PRIVATE, 1, 1, 1, WEFT_F32, (uint64_t)me + 4);
    struct tensor part = tensor_new(PRIVATE, end - first, n, n, out);
    int error =
        weft_scaled_matmul_reduce_scatter(SHMEM_TEAM_WORLD, &a.m, &a_scale.m, &b.m, &b_scale.m,
                                          NULL, WEFT_SUM, &part.m, WEFT_STREAM_HOST);
    tell("scaled_matmul_reduce_scatter", out, PRIVATE, error, tensor_hash(&part));
    tensor_free(&a);
    tensor_free(&b);
    tensor_free(&a_scale);
    tensor_free(&b_scale);
    tensor_free(&part);
}

static void vectors(weft_dtype dtype, enum memory memory, size_t n) {
    tensors_reset();
    size_t all = n * (size_t)npes;
    struct tensor source = filled(memory, 1, all, all, dtype, (uint64_t)me + 5);
    struct tensor dest = tensor_new(memory, 1, all, all, dtype);
    int error = weft_all_reduce(SHMEM_TEAM_WORLD, dest.m.data, source.m.data, all, dtype, WEFT_SUM,
                                WEFT_STREAM_HOST);
    tell("all_reduce", dtype, memory, error, tensor_hash(&dest));
    error = weft_reduce_scatter(SHMEM_TEAM_WORLD, dest.m.data, source.m.data, n, dtype, WEFT_SUM,
                                WEFT_STREAM_HOST);
    tell("reduce_scatter", dtype, memory, error, tensor_hash(&dest));
    error =
        weft_all_to_all(SHMEM_TEAM_WORLD, dest.m.data, source.m.data, n, dtype, WEFT_STREAM_HOST);
    tell("all_to_all", dtype, memory, error, tensor_hash(&dest));
    tensor_free(&source);
    tensor_free(&dest);
}

static void turned_factors(void) {
    for (size_t d = 0; d < 4; d++) {
        gather("all_gather_matmul", all_dtypes[d], STATICS, 600, 20, false);
        gather("gathered first", all_dtypes[d], PRIVATE, 30, 300, d % 2);
        gather_late(all_dtypes[d]);
        reduce(all_dtypes[d], PRIVATE, 40, 90, 30);
        reduce(all_dtypes[d], PRIVATE, 2100, 300, 20);
    }
    gather("shards larger than a room", WEFT_F32, HEAP, 50000, 4, false);
    gather("shards larger than a room", WEFT_F64, PRIVATE, 25000, 4, false);
    gather("long products, gathered too", WEFT_BF16, PRIVATE, 1300, 200, true);
    reduce(WEFT_F32, HEAP, 2400, 64, 70);
    gather_scaled(HEAP, 1100, 40, WEFT_BF16);
    reduce_scaled(WEFT_BF16, 4200, 30, 24);
}

int main(void) {
    tensors_open(false);
    me = shmem_my_pe();
    npes = shmem_n_pes();
    tap_case("operators");
    for (enum memory memory = PRIVATE; memory < MEMORIES; memory++) {
        for (size_t d = 0; d < 4; d++) {
            gather("all_gather_matmul", all_dtypes[d], memory, 600, 20, false);
            gather("gathered first", all_dtypes[d], memory, 30, 300, d % 2);
            reduce(all_dtypes[d], memory, 40, 90, 30);
            vectors(all_dtypes[d], memory, 5);
            vectors(all_dtypes[d], memory, 700);
        }
        gather_scaled(memory, 80, 30, WEFT_BF16);
        gather_scaled(memory, 20, 400, WEFT_F32);
        reduce(WEFT_F32, memory, 1500, 450, 3);
        vectors(WEFT_F32, memory, 40000);
    }
    gather("long products", WEFT_F32, HEAP, 2100, 300, false); /* while the next shard arrives */
    gather_late(WEFT_F32);
    gather_late(WEFT_F64);
    gather("shards larger than a room", WEFT_F32, HEAP, 50000, 4, false);
    gather("shards larger than a room", WEFT_F64, HEAP, 25000, 4, false);
    gather("long products, gathered too", WEFT_BF16, PRIVATE, 1300, 200, true);
    for (size_t d = 0; d < 4; d++)
        gather("wide products", all_dtypes[d], STATICS, 560, 900, false);
    gather_scaled(HEAP, 1100, 40, WEFT_BF16);
    reduce(WEFT_F32, HEAP, 2400, 64, 70); /* in several turns: arriving data is reduced meanwhile */
    reduce(WEFT_BF16, PRIVATE, 2100, 300, 20);
    reduce(WEFT_F64, PRIVATE, 2100, 300, 20);
    reduce(WEFT_F32, PRIVATE, 1300, 1500, 20);
    reduce_scaled(WEFT_BF16, 4200, 30, 24);
    reduce_scaled(WEFT_F32, 90, 60, 33);
    reduce_scaled(WEFT_F16, 300, 70, 20);
    for (transposed = SOME_A; transposed <= BOTH; transposed++)
        turned_factors();
    shmem_free(heap_arena);
    return tap_finish();
}
