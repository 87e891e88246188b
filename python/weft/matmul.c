/* SPDX-License-Identifier: BSD-3-Clause */
/* Matrix products combined with communication, with and without scales. A member whose arguments
 * are wrong passes NULL as the first factor, which the library refuses on all members. */
#include "matrices.h"
#include "session.h"

/* --- Products that are reduced ---------------------------------------------------------------- */

struct reduced {
    struct pyweft_operator on;
    struct pyweft_matrices c, a, b, a_scale, b_scale, bias;
};

static bool take_factors(struct reduced *r, const char *c_name, PyObject *const *in,
                         enum pyweft_matrix_kind kind) {
    return pyweft_matrices_take_one(&r->c, &r->on, c_name, in[0], PYWEFT_ARRAY_WRITTEN,
                                    PYWEFT_MATRIX_PLAIN) &&
           pyweft_matrices_take_one(&r->a, &r->on, "a", in[1], PYWEFT_ARRAY_READ, kind) &&
           pyweft_matrices_take_one(&r->b, &r->on, "b", in[2], PYWEFT_ARRAY_READ, kind);
}

static PyObject *close_reduced(struct reduced *r, int error) {
    struct pyweft_matrices *all[] = {&r->c, &r->a, &r->b, &r->a_scale, &r->b_scale, &r->bias};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        pyweft_matrices_drop(all[i]);
    return pyweft_operator_close(&r->on, error);
}

typedef int reduced_product(shmem_team_t, const weft_matrix *, const weft_matrix *, weft_op,
                            weft_matrix *, weft_stream);

static PyObject *multiply(const struct pyweft_signature *signature, PyObject *const *args,
                          Py_ssize_t nargs, PyObject *names, reduced_product *product) {
    struct reduced r = {.on.call = signature->call};
    PyObject *in[6];
    int error;
    bool right = pyweft_arguments_sort(signature, args, nargs, names, in);
    if (!pyweft_operator_open(&r.on, in[4], in[5]))
        return NULL;
    right = right && pyweft_operator_take_op(&r.on, in[3]) &&
            take_factors(&r, signature->names[0], in, PYWEFT_MATRIX_PLAIN);
    PYWEFT_WITHOUT_GIL(error, product(r.on.team, right ? pyweft_matrices_one(&r.a) : NULL,
                                      pyweft_matrices_one(&r.b), r.on.op, pyweft_matrices_one(&r.c),
                                      r.on.stream));
    return close_reduced(&r, error);
}

PYWEFT_FUNCTION(matmul_reduce_scatter) {
    static const struct pyweft_signature signature = {
        "matmul_reduce_scatter", 3, 4, {"c_shard", "a", "b", "op", "team", "stream"}};
    (void)self;
    return multiply(&signature, args, nargs, names, weft_matmul_reduce_scatter);
}

PYWEFT_FUNCTION(matmul_all_reduce) {
    static const struct pyweft_signature signature = {
        "matmul_all_reduce", 3, 4, {"c", "a", "b", "op", "team", "stream"}};
    (void)self;
    return multiply(&signature, args, nargs, names, weft_matmul_all_reduce);
}

/* in[]: c_shard, a, b, a_scale, b_scale, bias, op. */
static bool take_scaled(struct reduced *r, PyObject *const *in) {
    return pyweft_operator_take_op(&r->on, in[6]) &&
           take_factors(r, "c_shard", in, PYWEFT_MATRIX_EIGHT_BITS) &&
           pyweft_matrices_take_one(&r->a_scale, &r->on, "a_scale", in[3], PYWEFT_ARRAY_READ,
                                    PYWEFT_MATRIX_ROW_SCALES) &&
           pyweft_matrices_take_one(&r->b_scale, &r->on, "b_scale", in[4], PYWEFT_ARRAY_READ,
                                    PYWEFT_MATRIX_COL_SCALES) &&
           pyweft_matrices_take_one(&r->bias, &r->on, "bias", in[5], PYWEFT_ARRAY_READ,
                                    PYWEFT_MATRIX_BIAS);
}

PYWEFT_FUNCTION(scaled_matmul_reduce_scatter) {
    static const struct pyweft_signature signature = {
        "scaled_matmul_reduce_scatter",
        5,
        7,
        {"c_shard", "a", "b", "a_scale", "b_scale", "bias", "op", "team", "stream"}};
    struct reduced r = {.on.call = signature.call};
    PyObject *in[9];
    int error;
    (void)self;
    bool right = pyweft_arguments_sort(&signature, args, nargs, names, in);
    if (!pyweft_operator_open(&r.on, in[7], in[8]))
        return NULL;
    right = right && take_scaled(&r, in);
    PYWEFT_WITHOUT_GIL(error, weft_scaled_matmul_reduce_scatter(
                                  r.on.team, right ? pyweft_matrices_one(&r.a) : NULL,
                                  pyweft_matrices_one(&r.a_scale), pyweft_matrices_one(&r.b),
                                  pyweft_matrices_one(&r.b_scale), pyweft_matrices_one(&r.bias),
                                  r.on.op, pyweft_matrices_one(&r.c), r.on.stream));
    return close_reduced(&r, error);
}

/* --- Products of a gathered matrix ------------------------------------------------------------ */

struct gathered {
    struct pyweft_operator on;
    struct pyweft_matrices c, shard, b, full, a_scale, b_scale, bias;
};

static bool check_count(const struct gathered *g, const char *name, size_t count) {
    if (count == g->b.count)
        return true;
    PyErr_Format(PyExc_ValueError, "%s: got %zu matrices b and %zu %s: pass the same number",
                 g->on.call, g->b.count, count, name);
    return false;
}

static bool take_gathered(struct gathered *g, PyObject *const *in, PyObject *full,
                          enum pyweft_matrix_kind kind) {
    return pyweft_matrices_take(&g->c, &g->on, "c", in[0], PYWEFT_ARRAY_WRITTEN,
                                PYWEFT_MATRIX_PLAIN) &&
           pyweft_matrices_take_one(&g->shard, &g->on, "a_shard", in[1], PYWEFT_ARRAY_READ, kind) &&
           pyweft_matrices_take(&g->b, &g->on, "b", in[2], PYWEFT_ARRAY_READ, kind) &&
           pyweft_matrices_take_one(&g->full, &g->on, "a_full", full, PYWEFT_ARRAY_WRITTEN, kind) &&
           check_count(g, "c", g->c.count);
}

static PyObject *close_gathered(struct gathered *g, int error) {
    struct pyweft_matrices *all[] = {&g->c,       &g->shard,   &g->b,   &g->full,
                                     &g->a_scale, &g->b_scale, &g->bias};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        pyweft_matrices_drop(all[i]);
    return pyweft_operator_close(&g->on, error);
}

PYWEFT_FUNCTION(all_gather_matmul) {
    static const struct pyweft_signature signature = {
        "all_gather_matmul", 3, 4, {"c", "a_shard", "b", "a_full", "team", "stream"}};
    struct gathered g = {.on.call = signature.call};
    PyObject *in[6];
    int error;
    (void)self;
    bool right = pyweft_arguments_sort(&signature, args, nargs, names, in);
    if (!pyweft_operator_open(&g.on, in[4], in[5]))
        return NULL;
    right = right && take_gathered(&g, in, in[3], PYWEFT_MATRIX_PLAIN);
    PYWEFT_WITHOUT_GIL(
        error, weft_all_gather_matmul(g.on.team, right ? pyweft_matrices_one(&g.shard) : NULL,
                                      g.b.matrices, right ? g.b.count : 0, g.c.matrices,
                                      pyweft_matrices_one(&g.full), g.on.stream));
    return close_gathered(&g, error);
}

/* in[]: c, a_shard, b, a_scale, b_scale, bias, a_full. */
static bool take_gathered_scaled(struct gathered *g, PyObject *const *in) {
    bool biased = in[5] && in[5] != Py_None;
    return take_gathered(g, in, in[6], PYWEFT_MATRIX_EIGHT_BITS) &&
           pyweft_matrices_take_one(&g->a_scale, &g->on, "a_scale", in[3], PYWEFT_ARRAY_READ,
                                    PYWEFT_MATRIX_ROW_SCALES) &&
           pyweft_matrices_take(&g->b_scale, &g->on, "b_scale", in[4], PYWEFT_ARRAY_READ,
                                PYWEFT_MATRIX_COL_SCALES) &&
           check_count(g, "b_scale", g->b_scale.count) &&
           (!biased || (pyweft_matrices_take(&g->bias, &g->on, "bias", in[5], PYWEFT_ARRAY_READ,
                                             PYWEFT_MATRIX_BIAS) &&
                        check_count(g, "bias", g->bias.count)));
}

PYWEFT_FUNCTION(all_gather_scaled_matmul) {
    static const struct pyweft_signature signature = {
        "all_gather_scaled_matmul",
        5,
        7,
        {"c", "a_shard", "b", "a_scale", "b_scale", "bias", "a_full", "team", "stream"}};
    struct gathered g = {.on.call = signature.call};
    PyObject *in[9];
    int error;
    (void)self;
    bool right = pyweft_arguments_sort(&signature, args, nargs, names, in);
    if (!pyweft_operator_open(&g.on, in[7], in[8]))
        return NULL;
    right = right && take_gathered_scaled(&g, in);
    PYWEFT_WITHOUT_GIL(error, weft_all_gather_scaled_matmul(
                                  g.on.team, right ? pyweft_matrices_one(&g.shard) : NULL,
                                  pyweft_matrices_one(&g.a_scale), g.b.matrices, g.b_scale.matrices,
                                  right ? g.b.count : 0, g.bias.matrices, g.c.matrices,
                                  pyweft_matrices_one(&g.full), g.on.stream));
    return close_gathered(&g, error);
}

#define PRODUCT                                                                                 \
    "\n\nMatrices of float32, float64, bfloat16 or float16, all of one type, with contiguous\n" \
    "rows; factors may have contiguous columns instead, as the transpose of an array does.\n"   \
    "Collective over the team; a wrong argument on one member is a ValueError on all.\n"        \
    "With a stream, matrices are in GPU memory, and a wrong argument is an error of this\n"     \
    "member alone. NotImplementedError without a library for matrix products (oneDNN or\n"      \
    "OpenBLAS; cuBLASLt on a stream)."
#define SCALED                                                                              \
    "\n\nFactors are float8_e4m3fn or float8_e5m2, results float32, bfloat16 or float16.\n" \
    "Scales are numbers, or float32 arrays: one number, or one for each row of a and\n"     \
    "column of b. A bias has one number for each column. Otherwise as without scales."

PyMethodDef pyweft_matmul_methods[] = {
    PYWEFT_METHOD(
        all_gather_matmul,
        "all_gather_matmul(c, a_shard, b, a_full=None, *, team=None, stream=None)\n--\n\n"
        "c = A @ b, where A is the members' a_shard (rows x K), stacked in order of rank. b\n"
        "(K x N) and c (all rows x N) may be lists of matrices of any N. a_full, if given,\n"
        "receives A." PRODUCT),
    PYWEFT_METHOD(
        all_gather_scaled_matmul,
        "all_gather_scaled_matmul(c, a_shard, b, a_scale, b_scale, bias=None, a_full=None, *,\n"
        "                         team=None, stream=None)\n--\n\n"
        "c = (A @ b) * a_scale * b_scale + bias. a_scale belongs to this member's shard; b,\n"
        "b_scale, bias and c may be lists." SCALED),
    PYWEFT_METHOD(
        matmul_reduce_scatter,
        "matmul_reduce_scatter(c_shard, a, b, op='sum', *, team=None, stream=None)\n--\n\n"
        "c_shard = this member's rows of the sum (op 'avg': mean) over members of a @ b. a is\n"
        "M x K, b K x N with any K; the rows of the members' c_shard add up to M." PRODUCT),
    PYWEFT_METHOD(
        scaled_matmul_reduce_scatter,
        "scaled_matmul_reduce_scatter(c_shard, a, b, a_scale, b_scale, bias=None, op='sum', *,\n"
        "                             team=None, stream=None)\n--\n\n"
        "c_shard = this member's rows of the sum (op 'avg': mean) over members of (a @ b) *\n"
        "a_scale * b_scale + bias. Biases are summed as well: for a single bias, one member\n"
        "passes it and the others None." SCALED),
    PYWEFT_METHOD(matmul_all_reduce,
                  "matmul_all_reduce(c, a, b, op='sum', *, team=None, stream=None)\n--\n\n"
                  "c = the sum (op 'avg': mean) over members of a @ b, on every member." PRODUCT),
    {NULL, NULL, 0, NULL},
};
