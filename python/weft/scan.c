/* SPDX-License-Identifier: BSD-3-Clause */
/* Scans, and reductions by bits: collectives that C has for symmetric arrays alone. */
#include "scan.h"
#include <errno.h>
#include <string.h>
#include "session.h"

/* --- The calls of C -------------------------------------------------------------------------- */

/* clang-format off */
/* X(operand, TYPENAME): the types that have bits, and those of sums. */
#define WHOLE(X)                                                                                   \
    X(WEFT_I8, int8) X(WEFT_I16, int16) X(WEFT_I32, int32) X(WEFT_I64, int64)                      \
    X(WEFT_U8, uint8) X(WEFT_U16, uint16) X(WEFT_U32, uint32) X(WEFT_U64, uint64)
#define SUMMED(X)                                                                                  \
    WHOLE(X) X(WEFT_F32, float) X(WEFT_F64, double) X(WEFT_C64, complexf) X(WEFT_C128, complexd)
#define ROW(OPERAND, NAME)                                                                         \
    case OPERAND:                                                                                  \
        return shmem_##NAME(v->on.team, (void *)v->dest.data, (void *)v->source.data,              \
                            v->source.nelems);
#define ROW_inscan(OPERAND, N) ROW(OPERAND, N##_sum_inscan)
#define ROW_exscan(OPERAND, N) ROW(OPERAND, N##_sum_exscan)
#define ROW_and(OPERAND, N)    ROW(OPERAND, N##_and_reduce)
#define ROW_or(OPERAND, N)     ROW(OPERAND, N##_or_reduce)
#define ROW_xor(OPERAND, N)    ROW(OPERAND, N##_xor_reduce)
#define BY_TYPE(NAME, TYPES)                                                                       \
    static int NAME##_now(const struct weft_vectors *v) {                                          \
        switch ((int)v->dest.dtype->operand) {                                                     \
            TYPES(ROW_##NAME)                                                                      \
        }                                                                                          \
        return -EINVAL;                                                                            \
    }
#define IS_TYPE(OPERAND, N) case OPERAND:
/* clang-format on */
BY_TYPE(inscan, SUMMED)
BY_TYPE(exscan, SUMMED)
BY_TYPE(and, WHOLE)
BY_TYPE(or, WHOLE)
BY_TYPE(xor, WHOLE)

static bool has_bits(const struct weft_dtype_row *dtype) {
    switch ((int)dtype->operand) {
        WHOLE(IS_TYPE)
        return true;
    }
    return false;
}

static bool is_summed(const struct weft_dtype_row *dtype) {
    switch ((int)dtype->operand) {
        SUMMED(IS_TYPE)
        return true;
    }
    return false;
}

/* --- The calls of Python --------------------------------------------------------------------- */

static bool take(struct weft_vectors *v, PyObject *dest, PyObject *source,
                 bool (*fits)(const struct weft_dtype_row *), const char *types) {
    if (!weft_vectors_take(v, dest, source) ||
        !weft_array_check_nelems(v->on.call, "dest", &v->dest, v->source.nelems,
                                 "as many as source has"))
        return false;
    if (fits(v->dest.dtype))
        return weft_vectors_check_symmetric(v, v->dest.bytes, v->source.bytes, true);
    PyErr_Format(PyExc_ValueError, "%s: argument dest is of %s: pass %s", v->on.call,
                 v->dest.dtype->name, types);
    return false;
}

/* The calls, by number: members agree on it, for C would let different ones meet. */
enum { AND, OR, XOR, INSCAN, EXSCAN };

static PyObject *run(struct weft_vectors *v, bool right, int which) {
    static weft_vectors_plain *const calls[] = {
        [AND] = and_now,       [OR] = or_now,         [XOR] = xor_now,
        [INSCAN] = inscan_now, [EXSCAN] = exscan_now,
    };
    const double numbers[] = {(double)v->source.nelems, which};
    return weft_vectors_finish(v, weft_vectors_agree(v, right, numbers, 2), calls[which]);
}

static PyObject *scan(const struct weft_signature *signature, PyObject *const *args,
                      Py_ssize_t nargs, PyObject *names, int which) {
    struct weft_vectors v = {.on.call = signature->call};
    PyObject *in[3];
    bool right = weft_arguments_sort(signature, args, nargs, names, in);
    if (!weft_operator_open(&v.on, in[2], NULL))
        return NULL;
    right = right && take(&v, in[0], in[1], is_summed,
                          "whole numbers, float32, float64, complex64 or complex128");
    return run(&v, right, which);
}

WEFT_FUNCTION(inscan) {
    static const struct weft_signature signature = {"inscan", 1, 2, {"dest", "source", "team"}};
    (void)self;
    return scan(&signature, args, nargs, names, INSCAN);
}

WEFT_FUNCTION(exscan) {
    static const struct weft_signature signature = {"exscan", 1, 2, {"dest", "source", "team"}};
    (void)self;
    return scan(&signature, args, nargs, names, EXSCAN);
}

bool weft_bitwise_find(PyObject *op, int *bitwise) {
    static const char *const ops[] = {[AND] = "and", [OR] = "or", [XOR] = "xor"};
    for (int i = 0; op && PyUnicode_Check(op) && i < 3; i++)
        if (PyUnicode_CompareWithASCIIString(op, ops[i]) == 0) {
            *bitwise = i;
            return true;
        }
    return false;
}

PyObject *weft_bitwise_reduce(struct weft_vectors *v, PyObject *dest, PyObject *source,
                              int bitwise) {
    bool right = take(v, dest, source, has_bits, "whole numbers");
    if (right && v->on.stream != WEFT_STREAM_HOST) {
        PyErr_Format(PyExc_NotImplementedError,
                     "%s: argument op is 'and', 'or' or 'xor', and stream is given: a stream has "
                     "none of these",
                     v->on.call);
        right = false;
    }
    return run(v, right, bitwise);
}

#define SYMMETRIC                                                                               \
    "\n\nCollective over the team. dest and source are symmetric, of either space, the same\n"  \
    "objects on all members; elements are whole numbers, float32, float64, complex64 or\n"      \
    "complex128. A wrong argument on one member is a ValueError on all, and nothing has been\n" \
    "written then. RuntimeError: before init(), after finalize(), a peer that failed."

PyMethodDef weft_scan_methods[] = {
    WEFT_METHOD(inscan,
                "inscan(dest, source=None, *, team=None)\n--\n\n"
                "dest[i] = the sum of source[i] over the members up to this one. A source of\n"
                "None is dest." SYMMETRIC),
    WEFT_METHOD(exscan,
                "exscan(dest, source=None, *, team=None)\n--\n\n"
                "dest[i] = the sum of source[i] over the members before this one: 0 on the\n"
                "first. A source of None is dest." SYMMETRIC),
    {NULL, NULL, 0, NULL},
};
