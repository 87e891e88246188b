/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: weft_all_gather_scaled_matmul and weft_scaled_matmul_reduce_scatter against float64:
 * both 8-bit types in any mixture, one scale or one for each row or column, biases of all types or
 * no bias, all types of results, memories and teams, ragged and empty shards, zero sizes, leading
 * dimensions, transposed factors, several b, a_full, sizes beyond a block and a workspace. */
#include "ops/eight_bits.h"

enum { B_MAX = 3, PES_MAX = 16 };
static const weft_dtype results[] = {WEFT_F32, WEFT_BF16, WEFT_F16};

struct shape {
    size_t k, rows_max, cols_max;
};

/* --- Numbers that every PE can compute for all PEs -------------------------------------------- */

/* A member's choices in a round follow from its seed. */
static uint64_t seed_of(const struct test_team *t, int member, uint64_t round) {
    return mix(round * 1000 + (uint64_t)(t->start + member * t->stride));
}
static weft_dtype eight_bits_of(uint64_t seed) {
    return seed % 3 ? WEFT_F8E4M3 : WEFT_F8E5M2;
}
static bool scales_each(uint64_t seed) {
    return seed >> 8 & 1;
}

/* 1 x 1, or n x 1 or 1 x n. */
static struct tensor scales_new(enum memory memory, uint64_t seed, size_t n, bool by_rows) {
    size_t count = scales_each(seed) ? n : 1, rows = by_rows ? count : 1,
           cols = by_rows ? 1 : count;
    struct tensor t = tensor_new(memory, rows, cols, cols + (by_rows ? seed % 3 : 0), WEFT_F32);
    for (size_t i = 0; i < count; i++)
        *(float *)tensor_at(&t, by_rows ? i : 0, by_rows ? 0 : i) = scale_at(seed, i);
    return t;
}

static double scale_of(uint64_t seed, size_t i) {
    return (double)scale_at(seed, scales_each(seed) ? i : 0);
}

/* 1 x n of some type, or without columns. */
static struct tensor bias_new(uint64_t seed, size_t n) {
    size_t cols = seed % 4 == 3 ? 0 : n;
    struct tensor t = tensor_new(PRIVATE, 1, cols, cols, results[seed % 3]);
    tensor_fill(&t, seed);
    return t;
}

/* The error of adding K products in float, of one scaling, and of one rounding. */
static double allowed(double want, double magnitude, size_t k, weft_dtype dtype) {
    double result = fabs(want) * dtype_epsilon(dtype) * 1.01;
    double least = dtype == WEFT_F16 ? 0x1p-25 : 0;
    return result + magnitude * (double)(k + 4) * 0x1p-24 + least;
}

/* --- All-gather ------------------------------------------------------------------------------- */

/* Returns a member's rows in a round: ragged, sometimes none. */
static size_t rows_of(const struct test_team *t, int member, uint64_t round, size_t rows_max) {
    uint64_t pick = seed_of(t, member, round) >> 16;
    return pick % 5 == 0 ? 0 : pick % (rows_max + 1);
}

struct gather {
    const struct test_team *t;
    const struct shape *shape;
    uint64_t round;
    weft_dtype dtype; /* of A: the same on all members */
};

/* Returns the member that has row i of A, and the row's index in its shard. */
static int owner_of(const struct gather *g, size_t i, size_t *within) {
    int member = 0;
    for (size_t rows; i >= (rows = rows_of(g->t, member, g->round, g->shape->rows_max)); member++)
        i -= rows;
    *within = i;
    return member;
}

static void expect_row(const struct gather *g, size_t i, const struct tensor *b, uint64_t b_seed,
                       const struct tensor *bias, const struct tensor *c) {
    size_t row;
    uint64_t seed = seed_of(g->t, owner_of(g, i, &row), g->round);
    for (size_t j = 0; j < c->m.cols; j++) {
        double sum = 0, magnitude = 0, scale = scale_of(seed, row) * scale_of(b_seed, j);
        for (size_t k = 0; k < b->m.rows; k++) {
            double product = eight_bits(g->dtype, seed, row, k) * tensor_get(b, k, j);
            sum += product;
            magnitude += fabs(product);
        }
        double add = bias && bias->m.cols > 0 ? tensor_get(bias, 0, j) : 0;
        double want = sum * scale + add, got = tensor_get(c, i, j);
        double error = allowed(want, magnitude * scale + fabs(add), b->m.rows, c->m.dtype);
        EXPECT(fabs(got - want) <= error, "%s %s round %d: c(%zu, %zu) is %g, not %g", g->t->name,
               dtype_names[c->m.dtype], (int)g->round, i, j, got, want);
    }
}

static void expect_gathered(const struct gather *g, const struct tensor *full) {
    for (size_t i = 0; i < full->m.rows; i++) {
        size_t row;
        uint64_t seed = seed_of(g->t, owner_of(g, i, &row), g->round);
        for (size_t k = 0; k < full->m.cols; k++)
            EXPECT(*(uint8_t *)tensor_at(full, i, k) == byte_at(g->dtype, seed, row, k),
                   "a_full(%zu, %zu)", i, k);
    }
    EXPECT(tensor_guarded(full), "wrote outside of a_full");
}

static void gather(const struct test_team *t, const struct shape *shape, enum memory memory,
                   uint64_t round) {
    struct gather g = {t, shape, round, eight_bits_of(mix(round))};
    size_t rows = 0, nb = round % (B_MAX + 1), k = shape->k;
    for (int member = 0; member < t->npes; member++)
        rows += rows_of(t, member, round, shape->rows_max);
    tensors_reset();
    uint64_t seed = seed_of(t, t->me, round);
    size_t mine = rows_of(t, t->me, round, shape->rows_max);
    struct tensor shard = tensor_factor(memory, mine, k, g.dtype);
    struct tensor a_scale = scales_new(memory, seed, mine, true);
    struct tensor full = tensor_new(PRIVATE, rows, k, k + random_below(4), g.dtype);
    fill_eight_bits(&shard, seed);
    struct tensor b[B_MAX], b_scale[B_MAX], bias[B_MAX], c[B_MAX];
    weft_matrix bm[B_MAX], b_scales[B_MAX], biases[B_MAX], cm[B_MAX];
    uint64_t b_seeds[B_MAX];
    for (size_t j = 0; j < nb; j++) {
        uint64_t b_seed = b_seeds[j] = mix(seed + j + 1);
        size_t cols = random_below(shape->cols_max + 1);
        b[j] = tensor_factor(PRIVATE, k, cols, eight_bits_of(b_seed));
        b_scale[j] = scales_new(PRIVATE, b_seed, cols, false);
        bias[j] = bias_new(b_seed, cols);
        c[j] = tensor_new(memory, rows, cols, cols + random_below(3),
                          results[b_seed >> 20 & 1 ? 0 : b_seed % 3]);
        fill_eight_bits(&b[j], b_seed);
        bm[j] = b[j].m, b_scales[j] = b_scale[j].m, biases[j] = bias[j].m, cm[j] = c[j].m;
    }
    bool want_full = round % 5 == 0, biased = round % 3;
    int error = weft_all_gather_scaled_matmul(t->team, &shard.m, &a_scale.m, bm, b_scales, nb,
                                              biased ? biases : NULL, cm,
                                              want_full ? &full.m : NULL, WEFT_STREAM_HOST);
    EXPECT(error == 0, "%d: %s", error, weft_last_error());
    memset(shard.block, 0xff, shard.bytes); /* they may be overwritten at once */
    memset(a_scale.block, 0xff, a_scale.bytes);
    for (size_t j = 0; j < nb; j++) {
        for (size_t i = 0; i < rows; i++)
            expect_row(&g, i, &b[j], b_seeds[j], biased ? &bias[j] : NULL, &c[j]);
        EXPECT(tensor_guarded(&c[j]), "wrote outside of c");
        tensor_free(&b[j]);
        tensor_free(&b_scale[j]);
        tensor_free(&bias[j]);
        tensor_free(&c[j]);
    }
    if (want_full)
        expect_gathered(&g, &full);
    tensor_free(&shard);
    tensor_free(&a_scale);
    tensor_free(&full);
}

/* --- Reduce-scatter --------------------------------------------------------------------------- */

/* Returns a member's K, which differs between members and is sometimes 0. In some rounds a member
 * has no bias. */
static size_t k_of(const struct test_team *t, int member, uint64_t round, size_t k_max) {
    return (seed_of(t, member, round) >> 16) % (k_max + 1);
}
static bool biased(uint64_t seed) {
    return seed >> 9 & 1;
}

/* The last member has the remainder, and in odd rounds the first has no rows. */
static size_t shard_of(const struct test_team *t, int member, uint64_t round, size_t m) {
    int owners = round % 2 && t->npes > 1 ? t->npes - 1 : t->npes;
    int place = member - (t->npes - owners);
    size_t share = m / (size_t)owners;
    return place < 0 ? 0 : place < owners - 1 ? share : m - share * (size_t)(owners - 1);
}

/* Returns element (i, j) of a member's product, scaled and with its bias; every member can compute
 * it. */
static double product_at(uint64_t seed, size_t k, size_t n, size_t i, size_t j, double *magnitude) {
    double sum = 0, all = 0, scale = scale_of(seed, i) * scale_of(mix(seed), j), add = 0;
    for (size_t l = 0; l < k; l++) {
        double product = eight_bits(eight_bits_of(seed), seed, i, l) *
                         eight_bits(eight_bits_of(mix(seed)), mix(seed), l, j);
        sum += product;
        all += fabs(product);
    }
    if (biased(seed) && mix(seed) % 4 != 3 && n > 0)
        add = value_at(results[mix(seed) % 3], mix(seed), 0, j);
    *magnitude += all * scale + fabs(add);
    return sum * scale + add;
}

static void expect_sum(const struct test_team *t, const struct tensor *c, size_t first,
                       uint64_t round, size_t k_max, weft_op op) {
    for (size_t i = 0; i < c->m.rows; i++)
        for (size_t j = 0; j < c->m.cols; j++) {
            double sum = 0, magnitude = 0;
            for (int member = 0; member < t->npes; member++)
                sum += product_at(seed_of(t, member, round), k_of(t, member, round, k_max),
                                  c->m.cols, first + i, j, &magnitude);
            double want = op == WEFT_AVG ? sum / t->npes : sum;
            double got = tensor_get(c, i, j);
            double error = allowed(want, magnitude, k_max + (size_t)t->npes, c->m.dtype);
            EXPECT(fabs(got - want) <= error, "%s %s round %d: c(%zu, %zu) is %g, not %g", t->name,
                   dtype_names[c->m.dtype], (int)round, i, j, got, want);
        }
    EXPECT(tensor_guarded(c), "wrote outside of c");
}

static void scatter(const struct test_team *t, const struct shape *shape, enum memory memory,
                    uint64_t round) {
    size_t m = shape->rows_max, n = shape->cols_max, k = k_of(t, t->me, round, shape->k), first = 0;
    uint64_t seed = seed_of(t, t->me, round);
    for (int member = 0; member < t->me; member++)
        first += shard_of(t, member, round, m);
    tensors_reset();
    struct tensor a = tensor_factor(memory, m, k, eight_bits_of(seed));
    struct tensor b = tensor_factor(PRIVATE, k, n, eight_bits_of(mix(seed)));
    struct tensor a_scale = scales_new(PRIVATE, seed, m, true);
    struct tensor b_scale = scales_new(PRIVATE, mix(seed), n, false);
    struct tensor bias = bias_new(mix(seed), n);
    struct tensor c = tensor_new(memory, shard_of(t, t->me, round, m), n, n + random_below(3),
                                 results[round % 3]);
    fill_eight_bits(&a, seed);
    fill_eight_bits(&b, mix(seed));
    weft_op op = round % 4 == 1 ? WEFT_AVG : WEFT_SUM;
    int error = weft_scaled_matmul_reduce_scatter(t->team, &a.m, &a_scale.m, &b.m, &b_scale.m,
                                                  biased(seed) ? &bias.m : NULL, op, &c.m,
                                                  WEFT_STREAM_HOST);
    EXPECT(error == 0, "%d: %s", error, weft_last_error());
    struct tensor *inputs[] = {&a, &b, &a_scale, &b_scale, &bias};
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
        memset(inputs[i]->block, 0xff, inputs[i]->bytes);
        tensor_free(inputs[i]);
    }
    expect_sum(t, &c, first, round, shape->k, op);
    tensor_free(&c);
}

/* --- Values ----------------------------------------------------------------------------------- */

/* A row of all 256 values times one gives these values: NaNs remain NaNs, and no other value
 * becomes a NaN. */
static void every_value(weft_dtype dtype, const char *name) {
    tap_case(name);
    uint8_t values[256], one = dtype == WEFT_F8E4M3 ? 0x38 : 0x3c;
    float c[256], scale = 1;
    for (unsigned bits = 0; bits < 256; bits++)
        values[bits] = (uint8_t)bits;
    size_t rows = shmem_my_pe() == 0 ? 256 : 0;
    weft_matrix a = {values, rows, 1, 1, dtype, false}, b = {&one, 1, 1, 1, dtype, false};
    weft_matrix scales = {&scale, 1, 1, 1, WEFT_F32, false}, cm = {c, 256, 1, 1, WEFT_F32, false};
    int error = weft_all_gather_scaled_matmul(SHMEM_TEAM_WORLD, &a, &scales, &b, &scales, 1, NULL,
                                              &cm, NULL, WEFT_STREAM_HOST);
    EXPECT(error == 0, "%d: %s", error, weft_last_error());
    for (unsigned bits = 0; bits < 256; bits++) {
        uint8_t byte = (uint8_t)bits;
        double want = element_get(dtype, &byte);
        EXPECT(isnan(want) ? isnan(c[bits]) : (double)c[bits] == want, "%02x: %g, not %g", bits,
               (double)c[bits], want);
    }
}

int main(void) {
    static const struct shape shapes[] = {{16, 24, 40}, {1, 3, 5},  {33, 17, 29}, {0, 5, 6},
                                          {70, 9, 3},   {8, 40, 0}, {5, 0, 7},    {20, 3, 300}};
    tensors_open(true);
    struct test_team teams[4];
    int nteams = teams_open(teams);
    random_state = (uint64_t)shmem_my_pe() + 9;
    uint64_t round = 0;
    every_value(WEFT_F8E4M3, "every e4m3 value");
    every_value(WEFT_F8E5M2, "every e5m2 value");
    tap_case("all-gather, scaled matmul");
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (int repeat = 0; repeat < 12; repeat++, round++)
            for (int team = 0; team < nteams; team++)
                gather(&teams[team], &shapes[s], (enum memory)(round % MEMORIES), round);
    tap_case("scaled matmul, reduce-scatter");
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (int repeat = 0; repeat < 12; repeat++, round++)
            for (int team = 0; team < nteams; team++)
                scatter(&teams[team], &shapes[s], (enum memory)(round % MEMORIES), round);
    tap_case("shards that are larger than a workspace, products that are larger than a block");
    static const struct shape large[] = {{300, 400, 6}, {3, 1200, 4}, {4, 3, 9000}};
    for (round = 1001; round < 1010; round++) {
        gather(&teams[0], &large[round % 3], (enum memory)(round % MEMORIES), round);
        scatter(&teams[0], &large[round % 3], (enum memory)(round % MEMORIES), round);
    }
    shmem_free(heap_arena);
    return tap_finish();
}
