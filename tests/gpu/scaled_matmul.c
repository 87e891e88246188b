/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: the products of weft.h with 8-bit factors and scales on streams, against double:
 * both types in any mixture, one scale or one for each row or column, biases of all types or none,
 * all types of results, shapes that suit the library and others, transposed factors, several b,
 * a_full; and in graphs.
 * PEs: 1 2 3 4, also staged
 * Far: cyclic:2 seed=7,reorder=16 */
#include "gpu/graph.h"
#include "gpu/matrices.h"
#include "ops/eight_bits.h"

static const weft_dtype results[] = {WEFT_F32, WEFT_BF16, WEFT_F16};

/* A factor, or a bias, and what it was drawn from. */
struct drawn {
    struct placed p;
    uint64_t seed;
};

static enum kind draw_kind(void) {
    return random_below(2) ? OWN : SYMMETRIC;
}

static weft_dtype eight_bits_of(uint64_t seed) {
    return mix(seed) % 3 ? WEFT_F8E4M3 : WEFT_F8E5M2;
}

/* Sizes and leading dimensions that suit the library are multiples of 16. */
static size_t draw_side(size_t most) {
    return suits ? 16 * (1 + random_below(2)) : draw_size(most);
}

static struct drawn factor_of_8(enum kind kind, size_t rows, size_t cols, bool transposed,
                                uint64_t seed) {
    size_t width = transposed ? rows : cols, ld = width + (suits ? 16 : 3) * random_below(2);
    weft_matrix shape = {NULL, rows, cols, ld, eight_bits_of(seed), transposed};
    struct tensor image = tensor_of(PRIVATE, shape);
    fill_eight_bits(&image, seed);
    return (struct drawn){place(kind, image), seed};
}

/* 1 x 1, or n x 1 or 1 x n. */
static struct drawn scales_of(size_t n, bool each, bool by_rows, uint64_t seed) {
    size_t count = each ? n : 1, ld = by_rows ? 1 + random_below(3) : count;
    struct tensor image =
        tensor_new(PRIVATE, by_rows ? count : 1, by_rows ? 1 : count, ld, WEFT_F32);
    for (size_t i = 0; i < count; i++)
        element_set(WEFT_F32, tensor_at(&image, by_rows ? i : 0, by_rows ? 0 : i),
                    (double)scale_at(seed, i));
    bool factors_suit = suits;
    suits = factors_suit && random_below(3) > 0;
    struct drawn scales = {place(draw_kind(), image), seed};
    suits = factors_suit;
    return scales;
}

static double scale_value(const weft_matrix *m, uint64_t seed, size_t i) {
    return (double)scale_at(seed, m->rows * m->cols == 1 ? 0 : i);
}

/* 1 x n of some type. */
static struct drawn bias_of(size_t n, uint64_t seed) {
    struct tensor image = tensor_new(PRIVATE, 1, n, n, results[random_below(3)]);
    tensor_fill(&image, seed);
    return (struct drawn){place(draw_kind(), image), seed};
}

static double bias_value(const struct drawn *bias, size_t j) {
    return bias->p.m.cols > 0 ? value_at(bias->p.m.dtype, bias->seed, 0, j) : 0;
}

/* The sum of products of 8-bit values of these types. */
static struct sum dot_8(weft_dtype a, uint64_t a_seed, size_t i, const struct drawn *b, size_t j) {
    struct sum sum = {0, 0};
    for (size_t k = 0; k < b->p.m.rows; k++) {
        double term = eight_bits(a, a_seed, i, k) * eight_bits(b->p.m.dtype, b->seed, k, j);
        sum.value += term;
        sum.size += fabs(term);
    }
    return sum;
}

/* Bounds the error of sums of K products in float, a scaling and `roundings` to the type. Tensor
 * cores of real GPUs add a few products of 8-bit factors with fewer bits than float has. */
static double bound_8(weft_dtype dtype, struct sum sum, size_t k, int roundings) {
    double add = (double)(k + 4) * 0x1p-24 + (gpu_is_pretended() ? 0 : 0x1p-11);
    return sum.size * (add + 1.01 * roundings * dtype_epsilon(dtype)) + 0x1p-24;
}

/* --- All-gather ------------------------------------------------------------------------------- */

static struct gather {
    size_t rows, k, nb;
    struct drawn a, a_scale, b[NB_MAX], b_scale[NB_MAX], bias[NB_MAX];
    struct placed c[NB_MAX], full;
    bool copies, has_bias;
} g;

/* All members' shards have one type and orientation, and one kind of scales. The shard is in any
 * kind of memory from `least` on. */
static void gather_draw(uint64_t key, enum kind least) {
    draw_alike(key);
    suits = random_below(2);
    g.rows = draw_side(20);
    g.k = draw_side(24);
    bool transposed = !suits && random_below(2), each = !suits && random_below(2);
    g.copies = !transposed && random_below(2);
    weft_dtype dtype = eight_bits_of(key);
    draw_alone(key);
    g.nb = 1 + random_below(NB_MAX);
    g.has_bias = random_below(3) > 0;
    g.a = factor_of_8((enum kind)(least + random_below(KINDS - least)), g.rows, g.k, transposed,
                      seed_of(key, group.me, 0));
    g.a.p.m.dtype = g.a.p.image.m.dtype = dtype;
    fill_eight_bits(&g.a.p.image, g.a.seed);
    if (g.a.p.at != g.a.p.image.block)
        gpu_write(g.a.p.at, g.a.p.image.block, g.a.p.image.bytes);
    g.a_scale = scales_of(g.rows, each, true, seed_of(key, group.me, 9));
    for (size_t j = 0; j < g.nb; j++) {
        size_t n = draw_side(20);
        g.b[j] = factor_of_8(draw_kind(), g.k, n, suits || random_below(2),
                             seed_of(key, group.me, 1 + j));
        g.b_scale[j] =
            scales_of(n, !suits && random_below(2), false, seed_of(key, group.me, 4 + j));
        g.bias[j] = bias_of(random_below(3) == 0 || suits ? 0 : n, seed_of(key, group.me, 7));
        g.c[j] = place(draw_kind(), tensor_new(PRIVATE, g.rows * (size_t)group.n, n,
                                               n + 16 * random_below(2), results[random_below(3)]));
    }
    if (g.copies)
        g.full = place(draw_kind(), tensor_new(PRIVATE, g.rows * (size_t)group.n, g.k, g.k, dtype));
}

static void gather_enqueue(void) {
    weft_matrix b[NB_MAX], scales[NB_MAX], bias[NB_MAX], c[NB_MAX];
    for (size_t j = 0; j < g.nb; j++)
        b[j] = g.b[j].p.m, scales[j] = g.b_scale[j].p.m, bias[j] = g.bias[j].p.m, c[j] = g.c[j].m;
    done(weft_all_gather_scaled_matmul(group.team, &g.a.p.m, &g.a_scale.p.m, b, scales, g.nb,
                                       g.has_bias ? bias : NULL, c, g.copies ? &g.full.m : NULL,
                                       stream()),
         "all_gather_scaled_matmul");
}

static void check_product(uint64_t key, size_t j) {
    struct placed *c = &g.c[j];
    take_back(c);
    check_around(c, "all_gather_scaled_matmul");
    for (size_t i = 0; i < c->m.rows; i++)
        for (size_t col = 0; col < c->m.cols; col++) {
            int owner = (int)(i / g.rows);
            size_t row = i % g.rows;
            struct sum sum = dot_8(g.a.p.m.dtype, seed_of(key, owner, 0), row, &g.b[j], col);
            double scale = scale_value(&g.a_scale.p.m, seed_of(key, owner, 9), row) *
                           scale_value(&g.b_scale[j].p.m, g.b_scale[j].seed, col);
            double bias = g.has_bias ? bias_value(&g.bias[j], col) : 0;
            sum.value = sum.value * scale + bias;
            sum.size = sum.size * scale + fabs(bias);
            check(c, i, col, sum, bound_8(c->m.dtype, sum, g.k, 1), "all_gather_scaled_matmul");
        }
}

static void gather_check(uint64_t key) {
    gpu_drain(gpu_stream);
    for (size_t j = 0; j < g.nb; j++)
        check_product(key, j);
    if (!g.copies)
        return;
    take_back(&g.full);
    check_around(&g.full, "a_full");
    for (size_t i = 0; i < g.full.m.rows; i++)
        for (size_t k = 0; k < g.k; k++) {
            uint64_t seed = seed_of(key, (int)(i / g.rows), 0);
            uint8_t wanted = byte_at(g.full.m.dtype, seed, i % g.rows, k);
            uint8_t found = *(uint8_t *)tensor_at(&g.full.image, i, k);
            EXPECT(found == wanted, "a_full (%zu, %zu) is %#x, not %#x", i, k, found, wanted);
        }
}

static void gather_free(void) {
    tensor_free(&g.a.p.image), tensor_free(&g.a_scale.p.image);
    for (size_t j = 0; j < g.nb; j++) {
        tensor_free(&g.b[j].p.image), tensor_free(&g.b_scale[j].p.image);
        tensor_free(&g.bias[j].p.image), tensor_free(&g.c[j].image);
    }
    if (g.copies)
        tensor_free(&g.full.image);
}

/* --- Reduce-scatter --------------------------------------------------------------------------- */

static struct reduction {
    uint64_t key;
    weft_op op;
    size_t m, n;
    bool bias_of_first; /* member 0 alone passes a bias */
    struct drawn a, a_scale, b, b_scale, bias;
    struct placed c;
} r;

/* The arguments of member `member`; all but sizes, c's type and op may differ. */
struct parts {
    bool each_row, each_col;
    size_t k;
};

static struct parts parts_of(int member) {
    uint64_t drawn = mix(r.key * 31 + (uint64_t)member);
    size_t k = suits ? 16 * (1 + drawn % 2) : drawn % 24;
    return (struct parts){!suits && (drawn >> 8 & 1), !suits && (drawn >> 9 & 1), k};
}

static void reduce_draw(uint64_t key) {
    draw_alike(key);
    suits = random_below(2);
    r.key = key;
    r.op = random_below(2) ? WEFT_SUM : WEFT_AVG;
    size_t rows = draw_side(10);
    r.m = rows * (size_t)group.n;
    r.n = draw_side(20);
    r.bias_of_first = random_below(2);
    weft_dtype dtype = results[random_below(3)];
    draw_alone(key);
    struct parts parts = parts_of(group.me);
    r.a = factor_of_8(draw_kind(), r.m, parts.k, !suits && random_below(2),
                      seed_of(key, group.me, 0));
    r.a_scale = scales_of(r.m, parts.each_row, true, seed_of(key, group.me, 9));
    r.b =
        factor_of_8(draw_kind(), parts.k, r.n, suits || random_below(2), seed_of(key, group.me, 1));
    r.b_scale = scales_of(r.n, parts.each_col, false, seed_of(key, group.me, 4));
    r.bias = bias_of(r.n, seed_of(key, 0, 7));
    r.c = place(draw_kind(), tensor_new(PRIVATE, rows, r.n, r.n + 16 * random_below(2), dtype));
}

static void reduce_enqueue(void) {
    bool has_bias = r.bias_of_first && group.me == 0;
    done(weft_scaled_matmul_reduce_scatter(group.team, &r.a.p.m, &r.a_scale.p.m, &r.b.p.m,
                                           &r.b_scale.p.m, has_bias ? &r.bias.p.m : NULL, r.op,
                                           &r.c.m, stream()),
         "scaled_matmul_reduce_scatter");
}

static struct sum part_of(int member, size_t i, size_t j) {
    struct parts parts = parts_of(member);
    uint64_t a = seed_of(r.key, member, 0), b = seed_of(r.key, member, 1);
    struct sum sum = {0, 0};
    for (size_t k = 0; k < parts.k; k++) {
        double term = eight_bits(eight_bits_of(a), a, i, k) * eight_bits(eight_bits_of(b), b, k, j);
        sum.value += term;
        sum.size += fabs(term);
    }
    double scale = (double)scale_at(seed_of(r.key, member, 9), parts.each_row ? i : 0) *
                   (double)scale_at(seed_of(r.key, member, 4), parts.each_col ? j : 0);
    sum.value *= scale;
    sum.size *= scale;
    return sum;
}

/* The bias is of member 0, whose type the others do not know: it is added by member 0's check. */
static void reduce_check(void) {
    gpu_drain(gpu_stream);
    take_back(&r.c);
    check_around(&r.c, "scaled_matmul_reduce_scatter");
    for (size_t i = 0; i < r.c.m.rows; i++)
        for (size_t j = 0; j < r.n; j++) {
            struct sum all = {0, 0};
            double error = 0;
            for (int member = 0; member < group.n; member++) {
                struct sum part = part_of(member, r.c.m.rows * (size_t)group.me + i, j);
                double bias = r.bias_of_first && member == 0 ? 1 : 0; /* at most */
                part.size += bias;
                all.value += part.value;
                all.size += part.size;
                error += bound_8(r.c.m.dtype, part, parts_of(member).k, 2);
            }
            error += bound_8(r.c.m.dtype, all, (size_t)group.n, 1);
            double found = tensor_get(&r.c.image, i, j), divisor = r.op == WEFT_AVG ? group.n : 1;
            double bias = r.bias_of_first ? found * divisor - all.value : 0;
            EXPECT(fabs(bias) <= 1 + error, "the bias of column %zu is %g", j, bias);
            all.value = (all.value + bias) / divisor;
            check(&r.c, i, j, all, error, "scaled_matmul_reduce_scatter");
        }
}

static void reduce_free(void) {
    struct placed *all[] = {&r.a.p, &r.a_scale.p, &r.b.p, &r.b_scale.p, &r.bias.p, &r.c};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        tensor_free(&all[i]->image);
}

/* --- Cases ------------------------------------------------------------------------------------ */

static void gathers(void) {
    for (int i = 0; i < gpu_rounds_together(200, 24); i++) {
        gather_draw(10 + (uint64_t)i, HOST);
        gather_enqueue();
        gather_check(10 + (uint64_t)i);
        gather_free();
    }
}

static void reductions(void) {
    for (int i = 0; i < gpu_rounds_together(200, 24); i++) {
        reduce_draw(500 + (uint64_t)i);
        reduce_enqueue();
        reduce_check();
        reduce_free();
    }
}

static void graphs(void) {
    for (uint64_t key = 900; key < 904; key++) {
        gather_draw(key, OWN); /* graphs read host memory when they run */
        weft_cu_graph_exec graph = graph_capture(gpu_stream, gather_enqueue);
        for (int launch = 0; launch < 3; launch++)
            graph_replay(graph, gpu_stream);
        gather_check(key);
        graph_drop(graph);
        gather_free();
    }
}

int main(void) {
    matrices_start();
    shmem_team_t list = gpu_list_team();
    with_group(SHMEM_TEAM_WORLD, "all-gather + product", gathers);
    with_group(list, "all-gather + product, of a list of PEs", gathers);
    with_group(SHMEM_TEAM_WORLD, "product + reduce-scatter", reductions);
    with_group(list, "product + reduce-scatter, of a list of PEs", reductions);
    with_group(SHMEM_TEAM_WORLD, "in graphs", graphs);
    return gpu_finish();
}
