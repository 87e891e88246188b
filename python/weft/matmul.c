/* SPDX-License-Identifier: BSD-3-Clause */
/* Matrix products that go through communication. Matrices are arrays of two dimensions whose rows
 * are contiguous; the distance from row to row is free. */
#include <stdlib.h>
#include <string.h>
#include "argument.h"
#include "operator.h"
#include "session.h"

enum { PRODUCTS_MAX = 64 };

static bool take(const struct weft_operator *on, struct weft_array *array, const char *name,
                 PyObject *object, enum weft_array_use use) {
    return weft_array_take_matrix(array, on->call, name, object, use, on->stream) &&
           weft_operator_check_type(on, name, array);
}

static weft_matrix matrix(const struct weft_array *array) {
    return (weft_matrix){.data = array->data,
                         .rows = array->rows,
                         .cols = array->cols,
                         .ld = array->ld,
                         .dtype = array->dtype ? array->dtype->operand : 0};
}

/* --- Products that are reduced --------------------------------------------------------------- */

typedef int reduced_product(shmem_team_t, const weft_matrix *, const weft_matrix *, weft_op,
                            weft_matrix *, weft_stream);

static PyObject *multiply(const struct weft_signature *signature, PyObject *const *args,
                          Py_ssize_t nargs, PyObject *names, reduced_product *product) {
    struct weft_operator on = {.call = signature->call};
    struct weft_array arrays[3] = {{0}};
    PyObject *in[6];
    int error;
    if (!weft_arguments_sort(signature, args, nargs, names, in) ||
        !weft_operator_open(&on, in[4], in[5]))
        return NULL;
    bool right = weft_operator_take_op(&on, in[3]) &&
                 take(&on, &arrays[0], signature->names[0], in[0], WEFT_ARRAY_WRITTEN) &&
                 take(&on, &arrays[1], "a", in[1], WEFT_ARRAY_READ) &&
                 take(&on, &arrays[2], "b", in[2], WEFT_ARRAY_READ);
    weft_matrix c = matrix(&arrays[0]), a = matrix(&arrays[1]), b = matrix(&arrays[2]);
    WEFT_BEGIN_UNLOCKED;
    error = product(on.team, right ? &a : NULL, &b, on.op, &c, on.stream);
    WEFT_END_UNLOCKED;
    for (int i = 0; i < 3; i++)
        weft_array_drop(&arrays[i]);
    return weft_operator_close(&on, error);
}

WEFT_FUNCTION(matmul_reduce_scatter) {
    static const struct weft_signature signature = {
        "matmul_reduce_scatter", 3, 4, {"c_shard", "a", "b", "op", "team", "stream"}};
    (void)self;
    return multiply(&signature, args, nargs, names, weft_matmul_reduce_scatter);
}

WEFT_FUNCTION(matmul_all_reduce) {
    static const struct weft_signature signature = {
        "matmul_all_reduce", 3, 4, {"c", "a", "b", "op", "team", "stream"}};
    (void)self;
    return multiply(&signature, args, nargs, names, weft_matmul_all_reduce);
}

/* --- Products of what is gathered ------------------------------------------------------------ */

/* One matrix or a sequence of them. */
struct matrices {
    size_t count;
    struct weft_array *arrays;
    weft_matrix *matrices;
};

static bool take_each(const struct weft_operator *on, struct matrices *all, const char *name,
                      PyObject *object, enum weft_array_use use) {
    char text[32];
    for (size_t i = 0; i < all->count; i++) {
        PyOS_snprintf(text, sizeof text, "%s[%zu]", name, i);
        PyObject *one = PySequence_GetItem(object, (Py_ssize_t)i);
        bool right = one && take(on, &all->arrays[i], text, one, use);
        Py_XDECREF(one);
        if (!right)
            return false;
        all->matrices[i] = matrix(&all->arrays[i]);
    }
    return true;
}

static bool take_several(const struct weft_operator *on, struct matrices *all, const char *name,
                         PyObject *object, enum weft_array_use use) {
    bool several = PyList_Check(object) || PyTuple_Check(object);
    Py_ssize_t count = several ? PySequence_Size(object) : 1;
    if (count < 0 || count > PRODUCTS_MAX) {
        PyErr_Format(PyExc_ValueError, "%s: argument %s has %zd matrices: pass at most %d",
                     on->call, name, count, PRODUCTS_MAX);
        return false;
    }
    all->count = (size_t)count;
    all->arrays = calloc(all->count + 1, sizeof *all->arrays);
    all->matrices = calloc(all->count + 1, sizeof *all->matrices);
    if (!all->arrays || !all->matrices) {
        PyErr_NoMemory();
        return false;
    }
    if (several)
        return take_each(on, all, name, object, use);
    bool right = take(on, &all->arrays[0], name, object, use);
    all->matrices[0] = matrix(&all->arrays[0]);
    return right;
}

static void drop_several(struct matrices *all) {
    for (size_t i = 0; all->arrays && i < all->count; i++)
        weft_array_drop(&all->arrays[i]);
    free(all->arrays);
    free(all->matrices);
}

WEFT_FUNCTION(all_gather_matmul) {
    static const struct weft_signature signature = {
        "all_gather_matmul", 3, 4, {"c", "a_shard", "b", "a_full", "team", "stream"}};
    struct weft_operator on = {.call = signature.call};
    struct matrices b = {0}, c = {0};
    struct weft_array shard = {0}, full = {0};
    PyObject *in[6];
    int error;
    (void)self;
    if (!weft_arguments_sort(&signature, args, nargs, names, in) ||
        !weft_operator_open(&on, in[4], in[5]))
        return NULL;
    bool wants_full = in[3] && in[3] != Py_None;
    bool right = take_several(&on, &c, "c", in[0], WEFT_ARRAY_WRITTEN) &&
                 take(&on, &shard, "a_shard", in[1], WEFT_ARRAY_READ) &&
                 take_several(&on, &b, "b", in[2], WEFT_ARRAY_READ) &&
                 (!wants_full || take(&on, &full, "a_full", in[3], WEFT_ARRAY_WRITTEN));
    if (right && b.count != c.count) {
        PyErr_Format(PyExc_ValueError, "%s: got %zu matrices b and %zu c: pass as many",
                     signature.call, b.count, c.count);
        right = false;
    }
    weft_matrix a = matrix(&shard), a_full = matrix(&full);
    WEFT_BEGIN_UNLOCKED;
    error = weft_all_gather_matmul(on.team, right ? &a : NULL, b.matrices, right ? b.count : 0,
                                   c.matrices, right && wants_full ? &a_full : NULL, on.stream);
    WEFT_END_UNLOCKED;
    drop_several(&b);
    drop_several(&c);
    weft_array_drop(&shard);
    weft_array_drop(&full);
    return weft_operator_close(&on, error);
}

#define PRODUCT                                                                                 \
    "\n\nMatrices of float32, float64, bfloat16 or float16, all of one type, with contiguous\n" \
    "rows. Collective over the team; a wrong argument on one member is a ValueError on all.\n"  \
    "NotImplementedError without a library for matrix products (oneDNN or OpenBLAS)."

PyMethodDef weft_matmul_methods[] = {
    WEFT_METHOD(all_gather_matmul,
                "all_gather_matmul(c, a_shard, b, a_full=None, *, team=None, stream=None)\n"
                "--\n\n"
                "c = A @ b, where A is the members' a_shard (rows x K), stacked in order of rank.\n"
                "b (K x N) and c (all rows x N) may be lists of matrices of any N. a_full, if\n"
                "given, receives A." PRODUCT),
    WEFT_METHOD(
        matmul_reduce_scatter,
        "matmul_reduce_scatter(c_shard, a, b, op='sum', *, team=None, stream=None)\n"
        "--\n\n"
        "c_shard = this member's rows of the sum (op 'avg': mean) over members of a @ b.\n"
        "a is M x K, b K x N with any K; the rows of the members' c_shard add up to M." PRODUCT),
    WEFT_METHOD(matmul_all_reduce,
                "matmul_all_reduce(c, a, b, op='sum', *, team=None, stream=None)\n--\n\n"
                "c = the sum (op 'avg': mean) over members of a @ b, on every member." PRODUCT),
    {NULL, NULL, 0, NULL},
};
