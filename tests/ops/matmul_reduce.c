/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: weft_matmul_reduce_scatter and weft_matmul_all_reduce against float64 sums: all
 * types, memories and teams, a different K on every member, ragged and empty shards, zero sizes,
 * leading dimensions, transposed factors, averages, tall and wide outputs; all-reduce gives all
 * members the same bits. */
#include "ops/tensor.h"

struct shape {
    size_t m, n, k_max;
};

/* Returns a member's K, which differs between members and is sometimes 0. */
static size_t k_of(const struct test_team *t, int member, uint64_t round, size_t k_max) {
    return mix(round * 64 + (uint64_t)(t->start + member * t->stride)) % (k_max + 1);
}

static uint64_t seed_of(const struct test_team *t, int member, uint64_t round) {
    return round * 1000 + (uint64_t)(t->start + member * t->stride) * 2;
}

/* Returns the rows of c_shard: the last member has the remainder of M, and in odd rounds the first
 * has no rows. */
static size_t rows_of(const struct test_team *t, int member, uint64_t round, size_t m) {
    int owners = round % 2 && t->npes > 1 ? t->npes - 1 : t->npes;
    int place = member - (t->npes - owners);
    size_t share = m / (size_t)owners;
    return place < 0 ? 0 : place < owners - 1 ? share : m - share * (size_t)(owners - 1);
}

/* Returns element (i, j) of the sum over the members, and its number of products. */
static double sum_at(const struct test_team *t, weft_dtype dtype, uint64_t round, size_t k_max,
                     size_t i, size_t j, size_t *terms) {
    double sum = 0;
    *terms = 1;
    for (int member = 0; member < t->npes; member++) {
        size_t k = k_of(t, member, round, k_max);
        uint64_t seed = seed_of(t, member, round);
        for (size_t l = 0; l < k; l++)
            sum += value_at(dtype, seed, i, l) * value_at(dtype, seed + 1, l, j);
        *terms += k;
    }
    return sum;
}

/* Compares c with the rows of the sum from `first` on. */
static void expect_sum(const struct test_team *t, const struct tensor *c, size_t first,
                       uint64_t round, size_t k_max, weft_op op) {
    weft_dtype dtype = c->m.dtype;
    for (size_t i = 0; i < c->m.rows; i++)
        for (size_t j = 0; j < c->m.cols; j++) {
            size_t terms;
            double sum = sum_at(t, dtype, round, k_max, first + i, j, &terms);
            double want = op == WEFT_AVG ? sum / t->npes : sum;
            double least = (dtype == WEFT_F64 ? 1e-15 : 1e-6) * (double)terms;
            double allowed = fabs(want) * dtype_epsilon(dtype) * 1.01 + least;
            double got = tensor_get(c, i, j);
            EXPECT(fabs(got - want) <= allowed, "%s %s round %d: c(%zu, %zu) is %g, not %g",
                   t->name, dtype_names[dtype], (int)round, i, j, got, want);
        }
    EXPECT(tensor_guarded(c), "wrote outside of c");
}

struct factors {
    struct tensor a, b;
};

static struct factors factors_new(const struct test_team *t, weft_dtype dtype, enum memory memory,
                                  const struct shape *shape, uint64_t round) {
    size_t k = k_of(t, t->me, round, shape->k_max);
    uint64_t seed = seed_of(t, t->me, round);
    struct factors f = {tensor_factor(memory, shape->m, k, dtype),
                        tensor_factor(PRIVATE, k, shape->n, dtype)};
    tensor_fill(&f.a, seed);
    tensor_fill(&f.b, seed + 1);
    return f;
}

/* The factors may be overwritten as soon as the call has returned. */
static void factors_free(struct factors *f) {
    memset(f->a.block, 0xff, f->a.bytes);
    memset(f->b.block, 0xff, f->b.bytes);
    tensor_free(&f->a);
    tensor_free(&f->b);
}

static void scatter(const struct test_team *t, weft_dtype dtype, enum memory memory,
                    const struct shape *shape, uint64_t round) {
    struct factors f = factors_new(t, dtype, memory, shape, round);
    size_t first = 0, rows = rows_of(t, t->me, round, shape->m);
    for (int member = 0; member < t->me; member++)
        first += rows_of(t, member, round, shape->m);
    struct tensor c = tensor_new(memory, rows, shape->n, shape->n + random_below(3), dtype);
    weft_op op = round % 3 == 1 ? WEFT_AVG : WEFT_SUM;
    int error = weft_matmul_reduce_scatter(t->team, &f.a.m, &f.b.m, op, &c.m, WEFT_STREAM_HOST);
    factors_free(&f);
    EXPECT(error == 0, "%d: %s", error, weft_last_error());
    expect_sum(t, &c, first, round, shape->k_max, op);
    tensor_free(&c);
}

/* Every member gathers all members' hashes. */
static void expect_same_bits(const struct test_team *t, const struct tensor *c) {
    uint64_t mine = tensor_hash(c), all[64];
    int error = weft_all_gather(t->team, all, &mine, 1, WEFT_F64, WEFT_STREAM_HOST);
    EXPECT(error == 0, "%s", weft_last_error());
    for (int member = 0; member < t->npes; member++)
        EXPECT(all[member] == mine, "%s: member %d has other bits", t->name, member);
}

static void all(const struct test_team *t, weft_dtype dtype, enum memory memory,
                const struct shape *shape, uint64_t round) {
    struct factors f = factors_new(t, dtype, memory, shape, round);
    struct tensor c = tensor_new(memory, shape->m, shape->n, shape->n + random_below(3), dtype);
    weft_op op = round % 3 == 1 ? WEFT_AVG : WEFT_SUM;
    int error = weft_matmul_all_reduce(t->team, &f.a.m, &f.b.m, op, &c.m, WEFT_STREAM_HOST);
    factors_free(&f);
    EXPECT(error == 0, "%d: %s", error, weft_last_error());
    expect_sum(t, &c, 0, round, shape->k_max, op);
    expect_same_bits(t, &c);
    tensor_free(&c);
}

/* Has enough rows that up to four members make and reduce their products in several turns. */
static void large(const struct test_team *world, uint64_t round) {
    static const struct shape shape = {1500, 450, 1};
    tap_case("several turns");
    for (size_t d = 0; d < 2; d++) {
        tensors_reset();
        scatter(world, all_dtypes[d], HEAP, &shape, round + d);
        all(world, all_dtypes[d], PRIVATE, &shape, round + d);
    }
}

int main(void) {
    /* The last four are too large for every member to reduce the whole itself, two of them for one
     * band. */
    static const struct shape shapes[] = {{24, 40, 12}, {1, 5, 3},    {17, 29, 33},  {6, 5, 0},
                                          {9, 0, 7},    {0, 8, 4},    {3, 300, 8},   {300, 3, 8},
                                          {67, 131, 3}, {131, 67, 3}, {150, 260, 2}, {260, 150, 2}};
    tensors_open(true);
    struct test_team teams[4];
    int nteams = teams_open(teams);
    uint64_t round = 0;
    for (size_t d = 0; d < 4; d++) {
        tap_case(dtype_names[all_dtypes[d]]);
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++, round++)
            for (int team = 0; team < nteams; team++) {
                tensors_reset();
                enum memory memory = (enum memory)((s + (size_t)shmem_my_pe()) % MEMORIES);
                random_state = round * 64 + (uint64_t)shmem_my_pe();
                scatter(&teams[team], all_dtypes[d], memory, &shapes[s], round);
                all(&teams[team], all_dtypes[d], memory, &shapes[s], round);
            }
    }
    large(&teams[0], round);
    shmem_free(heap_arena);
    return tap_finish();
}
