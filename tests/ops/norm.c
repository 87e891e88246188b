/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: weft_all_reduce_rms_norm on the host, against doubles: all types and teams, with and
 * without bias, residual, weight and 8-bit results, in place; one scale and a scale for each group;
 * numbers too large for 8 bits; rows and columns of 0; wrong arguments, which are the same error on
 * all members and write nothing. */
#include <errno.h>
#include "expect.h"
#include "ops/tensor.h"

static const float epsilon = 1e-5f;

/* A call, and which of its arrays are passed. */
struct problem {
    const struct test_team *t;
    size_t rows, cols, group;
    weft_dtype dtype;
    bool bias, residual, weight, quantized, in_place;
    uint64_t round;
};

static double value(const struct problem *p, uint64_t what, size_t i, size_t j) {
    return value_at(p->dtype, p->round * 64 + what, i, j);
}

enum { BIAS = 50, RESIDUAL, WEIGHT };

/* Returns what the sum of all members' sources, the bias and the residual are, without rounding. */
static double exact_z(const struct problem *p, size_t row, size_t col) {
    double z = 0;
    for (int member = 0; member < p->t->npes; member++)
        z += value(p, (uint64_t)member, row, col);
    z += p->bias ? value(p, BIAS, 0, col) : 0;
    return z + (p->residual ? value(p, RESIDUAL, row, col) : 0);
}

struct arrays {
    struct tensor source, bias, residual, weight, residual_out, out, quantized, scales;
    weft_norm norm;
};

static struct arrays arrays_new(const struct problem *p) {
    enum memory memory = (enum memory)(p->round % MEMORIES);
    size_t groups = p->group ? p->rows * (p->cols / p->group) : 1;
    struct arrays a = {.source = tensor_new(memory, p->rows, p->cols, p->cols, p->dtype),
                       .bias = tensor_new(PRIVATE, 1, p->cols, p->cols, p->dtype),
                       .residual = tensor_new(PRIVATE, p->rows, p->cols, p->cols, p->dtype),
                       .weight = tensor_new(PRIVATE, 1, p->cols, p->cols, p->dtype),
                       .residual_out = tensor_new(memory, p->rows, p->cols, p->cols, p->dtype),
                       .out = tensor_new(memory, p->rows, p->cols, p->cols, p->dtype),
                       .quantized = tensor_new(PRIVATE, p->rows, p->cols, p->cols, WEFT_F8E4M3),
                       .scales = tensor_new(PRIVATE, 1, groups, groups, WEFT_F32)};
    tensor_fill(&a.source, p->round * 64 + (uint64_t)p->t->me);
    tensor_fill(&a.bias, p->round * 64 + BIAS);
    tensor_fill(&a.residual, p->round * 64 + RESIDUAL);
    tensor_fill(&a.weight, p->round * 64 + WEIGHT);
    if (!p->group)
        ((float *)a.scales.m.data)[0] = 0.004f; /* some results exceed 448 times this */
    a.norm = (weft_norm){.rows = p->rows,
                         .cols = p->cols,
                         .dtype = p->dtype,
                         .bias = p->bias ? a.bias.m.data : NULL,
                         .residual = p->residual ? a.residual.m.data : NULL,
                         .weight = p->weight ? a.weight.m.data : NULL,
                         .epsilon = epsilon,
                         .residual_out = p->in_place ? a.residual.m.data : a.residual_out.m.data,
                         .out = p->in_place ? a.source.m.data : a.out.m.data,
                         .quantized = p->quantized ? a.quantized.m.data : NULL,
                         .scales = p->quantized ? a.scales.m.data : NULL,
                         .group = p->group};
    return a;
}

static void arrays_free(struct arrays *a) {
    struct tensor *const all[] = {&a->source,       &a->bias, &a->residual,  &a->weight,
                                  &a->residual_out, &a->out,  &a->quantized, &a->scales};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        EXPECT(tensor_guarded(all[i]), "array %zu", i);
        tensor_free(all[i]);
    }
    tensors_reset();
}

static void expect_quantized(const struct problem *p, const struct arrays *a, size_t row,
                             size_t col, double y, double slack) {
    const float *scales = a->scales.m.data;
    size_t at = row * p->cols + col;
    double scale = scales[p->group ? at / p->group : 0], wanted = y / scale;
    wanted = fabs(wanted) > 448 ? copysign(448, wanted) : wanted;
    double got = tensor_get(&a->quantized, row, col);
    double step = fabs(wanted) * 0x1p-4 + 0x1p-10 + slack / scale; /* half of a last place */
    EXPECT(fabs(got - wanted) <= step * 1.01, "row %zu col %zu: %g, not %g", row, col, got, wanted);
}

/* `z` are the rounded sums that the call has stored. */
static void expect_row(const struct problem *p, const struct arrays *a, const struct tensor *z,
                       const struct tensor *out, size_t row) {
    double eps = dtype_epsilon(p->dtype), squares = 0, most = 0;
    for (size_t col = 0; col < p->cols; col++) {
        double got = tensor_get(z, row, col), wanted = exact_z(p, row, col);
        EXPECT(fabs(got - wanted) <= (p->t->npes + 3) * eps * (p->t->npes + 2),
               "z, row %zu col %zu: %g, not %g", row, col, got, wanted);
        squares += got * got;
    }
    for (size_t col = 0; col < p->cols; col++) {
        double y = tensor_get(z, row, col) / sqrt(squares / (double)p->cols + epsilon);
        y *= p->weight ? value(p, WEIGHT, 0, col) : 1;
        double got = tensor_get(out, row, col), bound = fabs(y) * (eps + 0x1p-21) + 0x1p-25;
        EXPECT(fabs(got - y) <= bound, "row %zu col %zu: %.9g, not %.9g", row, col, got, y);
        if (p->quantized)
            expect_quantized(p, a, row, col, y, fabs(y) * 0x1p-21);
        most = fabs(y) > most ? fabs(y) : most;
        if (p->quantized && p->group && (col + 1) % p->group == 0) {
            float scale = ((float *)a->scales.m.data)[(row * p->cols + col) / p->group];
            EXPECT(fabs(scale * 448 - most) <= most * 0x1p-20 + 1e-10, "%g, not %g", scale * 448,
                   most);
            most = 0;
        }
    }
}

static void norm_once(const struct problem *p) {
    struct arrays a = arrays_new(p);
    int error = weft_all_reduce_rms_norm(p->t->team, a.source.m.data, &a.norm, WEFT_STREAM_HOST);
    EXPECT(error == 0, "%d: %s", error, weft_last_error());
    for (size_t row = 0; row < p->rows; row++)
        expect_row(p, &a, p->in_place ? &a.residual : &a.residual_out,
                   p->in_place ? &a.source : &a.out, row);
    arrays_free(&a);
}

static struct problem draw(const struct test_team *t, weft_dtype dtype, uint64_t round) {
    uint64_t bits = mix(round);
    struct problem p = {.t = t, .dtype = dtype, .round = round};
    p.group = bits % 3 == 0 ? 8 * (1 + bits / 3 % 4) : 0;
    p.rows = bits / 16 % 6;
    p.cols = p.group ? p.group * (1 + bits / 128 % 5) : bits / 128 % 90;
    p.bias = bits >> 20 & 1, p.residual = bits >> 21 & 1, p.weight = bits >> 22 & 1;
    p.quantized = bits >> 23 & 1, p.in_place = p.residual && (bits >> 24 & 1);
    return p;
}

/* The last member's argument is wrong. */
static void wrong_arguments(const struct test_team *t) {
    struct problem p = {
        .t = t, .rows = 2, .cols = 24, .dtype = WEFT_BF16, .quantized = true, .group = 8};
    struct arrays a = arrays_new(&p);
    weft_norm n = a.norm;
    bool last = t->me == t->npes - 1;
#define CALL(NORM) weft_all_reduce_rms_norm(t->team, a.source.m.data, NORM, WEFT_STREAM_HOST)
    expect_error(CALL(last ? NULL : &n), -EINVAL, "norm is NULL");
    n.dtype = last ? WEFT_I16 : WEFT_BF16;
    expect_error(CALL(&n), -EINVAL, "norm->dtype is WEFT_I16");
    n = a.norm;
    n.group = last ? 16 : 8;
    expect_error(CALL(&n), -EINVAL, "norm->group is 16: pass a multiple of 8 that divides the 24");
    n = a.norm;
    n.out = last ? NULL : n.out;
    expect_error(CALL(&n), -EINVAL, "norm->out is NULL");
    n = a.norm;
    n.scales = last ? NULL : n.scales;
    expect_error(CALL(&n), -EINVAL, "norm->scales is NULL");
    n = a.norm;
    n.rows = last ? 1 : 2;
    if (t->npes > 1)
        expect_error(CALL(&n), -EINVAL, "norm->rows is");
#undef CALL
    EXPECT(tensor_untouched(&a.out) && tensor_untouched(&a.residual_out), "a result was written");
    arrays_free(&a);
}

int main(void) {
    static const weft_dtype dtypes[] = {WEFT_F32, WEFT_BF16, WEFT_F16};
    tensors_open(true);
    struct test_team teams[4];
    int nteams = teams_open(teams);
    uint64_t round = 0;
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) {
        tap_case(dtype_names[dtypes[d]]);
        for (int i = 0; i < 60; i++, round++)
            for (int team = 0; team < nteams; team++) {
                struct problem p = draw(&teams[team], dtypes[d], round);
                norm_once(&p);
            }
    }
    tap_case("wrong arguments are an error of all members");
    for (int team = 0; team < nteams; team++)
        wrong_arguments(&teams[team]);
    shmem_finalize();
    return tap_finish();
}
