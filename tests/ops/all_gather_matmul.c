/* SPDX-License-Identifier: BSD-3-Clause */
/* weft_all_gather_matmul against a float64 product: all types, memories and teams, ragged and empty
 * shards, zero sizes, leading dimensions, transposed shards and b, zero to three b, with and
 * without a_full. */
#include "ops/tensor.h"

struct shape {
    size_t k, rows_max, cols_max;
};

/* Returns the rows of a member's shard in a round: ragged, sometimes none. */
static size_t rows_of(const struct test_team *t, int member, uint64_t round, size_t rows_max) {
    uint64_t pick = mix(round * 64 + (uint64_t)(t->start + member * t->stride));
    return pick % 5 == 0 ? 0 : pick % (rows_max + 1);
}

static uint64_t seed_of(const struct test_team *t, int member, uint64_t round) {
    return round * 1000 + (uint64_t)(t->start + member * t->stride);
}

/* Returns element (i, j) of the whole A. */
static double a_at(const struct test_team *t, weft_dtype dtype, uint64_t round, size_t rows_max,
                   size_t i, size_t j) {
    int member = 0;
    for (size_t rows; i >= (rows = rows_of(t, member, round, rows_max)); member++)
        i -= rows;
    return value_at(dtype, seed_of(t, member, round), i, j);
}

static void expect_product(const struct test_team *t, const struct tensor *c,
                           const struct tensor *b, size_t rows_max, uint64_t round) {
    weft_dtype dtype = c->m.dtype;
    for (size_t i = 0; i < c->m.rows; i++)
        for (size_t j = 0; j < c->m.cols; j++) {
            double sum = 0;
            for (size_t k = 0; k < b->m.rows; k++)
                sum += a_at(t, dtype, round, rows_max, i, k) * tensor_get(b, k, j);
            double least = dtype == WEFT_F64 ? 1e-15 : 1e-6;
            double allowed =
                fabs(sum) * dtype_epsilon(dtype) * 1.01 + least * (double)(b->m.rows + 1);
            double got = tensor_get(c, i, j);
            EXPECT(fabs(got - sum) <= allowed, "%s %s round %d: c(%zu, %zu) is %g, not %g", t->name,
                   dtype_names[dtype], (int)round, i, j, got, sum);
        }
    EXPECT(tensor_guarded(c), "wrote outside of c");
}

static void expect_gathered(const struct test_team *t, const struct tensor *full, size_t rows_max,
                            uint64_t round) {
    for (size_t i = 0; i < full->m.rows; i++)
        for (size_t j = 0; j < full->m.cols; j++)
            EXPECT(tensor_get(full, i, j) == a_at(t, full->m.dtype, round, rows_max, i, j),
                   "a_full(%zu, %zu)", i, j);
    EXPECT(tensor_guarded(full), "wrote outside of a_full");
}

static void run(const struct test_team *t, weft_dtype dtype, enum memory memory,
                const struct shape *shape, uint64_t round) {
    size_t rows = 0, nb = round % 4, k = shape->k;
    for (int member = 0; member < t->npes; member++)
        rows += rows_of(t, member, round, shape->rows_max);
    tensors_reset();
    random_state = seed_of(t, t->me, round) * 77 + 1;
    size_t mine = rows_of(t, t->me, round, shape->rows_max);
    struct tensor shard = tensor_factor(memory, mine, k, dtype);
    struct tensor full = tensor_new(PRIVATE, rows, k, k + random_below(4), dtype);
    struct tensor b[3], c[3];
    weft_matrix bm[3], cm[3];
    tensor_fill(&shard, seed_of(t, t->me, round));
    for (size_t j = 0; j < nb; j++) {
        size_t cols = random_below(shape->cols_max + 1);
        b[j] = tensor_factor(PRIVATE, k, cols, dtype);
        c[j] = tensor_new(memory, rows, cols, cols + random_below(3), dtype);
        tensor_fill(&b[j], round * 31 + j + (uint64_t)t->me);
        bm[j] = b[j].m;
        cm[j] = c[j].m;
    }
    bool want_full = round % 3 == 0;
    int error = weft_all_gather_matmul(t->team, &shard.m, bm, nb, cm, want_full ? &full.m : NULL,
                                       WEFT_STREAM_HOST);
    EXPECT(error == 0, "%d: %s", error, weft_last_error());
    memset(shard.block, 0xff, shard.bytes); /* it may be overwritten at once */
    for (size_t j = 0; j < nb; j++) {
        expect_product(t, &c[j], &b[j], shape->rows_max, round);
        tensor_free(&b[j]);
        tensor_free(&c[j]);
    }
    if (want_full)
        expect_gathered(t, &full, shape->rows_max, round);
    tensor_free(&shard);
    tensor_free(&full);
}

int main(void) {
    static const struct shape shapes[] = {{16, 24, 40}, {1, 3, 5},  {33, 17, 29}, {0, 5, 6},
                                          {70, 9, 3},   {8, 40, 0}, {5, 0, 7}};
    tensors_open(true);
    struct test_team teams[4];
    int nteams = teams_open(teams);
    uint64_t round = 0;
    for (size_t d = 0; d < 4; d++) {
        tap_case(dtype_names[all_dtypes[d]]);
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
            for (enum memory memory = PRIVATE; memory < MEMORIES; memory++, round++)
                for (int team = 0; team < nteams; team++)
                    run(&teams[team], all_dtypes[d], memory, &shapes[s], round * 4);
    }
    tap_case("several b, with and without a_full");
    for (round = 1; round < 25; round++)
        for (int team = 0; team < nteams; team++)
            run(&teams[team], all_dtypes[round % 4], round % MEMORIES, &shapes[0], round);
    tap_case("few rows and wide b: A is gathered first");
    struct shape wide = {20, 3, 200};
    for (round = 101; round < 109; round++)
        run(&teams[0], all_dtypes[round % 4], round % MEMORIES, &wide, round);
    tap_case("shards that are larger than a workspace");
    struct shape tall = {200, 300, 6};
    for (round = 201; round < 206; round++)
        run(&teams[0], all_dtypes[round % 4], round % MEMORIES, &tall, round);
    shmem_free(heap_arena);
    return tap_finish();
}
