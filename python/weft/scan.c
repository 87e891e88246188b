/* SPDX-License-Identifier: BSD-3-Clause */
/* Scans and bitwise reductions, which C offers for symmetric arrays only. */
#include "scan.h"
#include <errno.h>

/* --- The calls of C -------------------------------------------------------------------------- */

/* clang-format off */
/* X(operand, TYPENAME, T): WHOLE lists the types with bits, SUMMED those that can be added.
 * Additions in the unsigned T give the same bits, and wrap around. */
#define WHOLE(X)                                                                                   \
    X(WEFT_I8, int8, uint8_t) X(WEFT_I16, int16, uint16_t) X(WEFT_I32, int32, uint32_t)            \
    X(WEFT_I64, int64, uint64_t) X(WEFT_U8, uint8, uint8_t) X(WEFT_U16, uint16, uint16_t)          \
    X(WEFT_U32, uint32, uint32_t) X(WEFT_U64, uint64, uint64_t)
#define SUMMED(X)                                                                                  \
    WHOLE(X) X(WEFT_F32, float, float) X(WEFT_F64, double, double)                                 \
    X(WEFT_C64, complexf, float _Complex) X(WEFT_C128, complexd, double _Complex)
#define ROW(OPERAND, NAME)                                                                         \
    case OPERAND:                                                                                  \
        return shmem_##NAME(v->on.team, (void *)v->dest.data, (void *)v->source.data,              \
                            v->source.nelems);
#define ROW_inscan(OPERAND, N, T) ROW(OPERAND, N##_sum_inscan)
#define ROW_exscan(OPERAND, N, T) ROW(OPERAND, N##_sum_exscan)
#define ROW_and(OPERAND, N, T)    ROW(OPERAND, N##_and_reduce)
#define ROW_or(OPERAND, N, T)     ROW(OPERAND, N##_or_reduce)
#define ROW_xor(OPERAND, N, T)    ROW(OPERAND, N##_xor_reduce)
#define BY_TYPE(NAME, TYPES)                                                                       \
    static int NAME##_now(const struct pyweft_vectors *v) {                                        \
        switch ((int)v->dest.dtype->operand) {                                                     \
            TYPES(ROW_##NAME)                                                                      \
        }                                                                                          \
        return -EINVAL;                                                                            \
    }
#define IS_TYPE(OPERAND, N, T) case OPERAND:
/* clang-format on */
BY_TYPE(inscan, SUMMED)
BY_TYPE(exscan, SUMMED)
BY_TYPE(and, WHOLE)
BY_TYPE(or, WHOLE)
BY_TYPE(xor, WHOLE)

static bool has_bits(const struct pyweft_dtype_row *dtype) {
    switch ((int)dtype->operand) {
        WHOLE(IS_TYPE)
        return true;
    }
    return false;
}

static bool is_summed(const struct pyweft_dtype_row *dtype) {
    switch ((int)dtype->operand) {
        SUMMED(IS_TYPE)
        return true;
    }
    return false;
}

/* --- Short arrays ---------------------------------------------------------------------------- */

/* FOLD_<NAME>: folds the first `members` sources, in the order of the members like C; 0 for
 * none. */
/* clang-format off */
#define FOLD_ROW(OPERAND, T, OP)                                                                   \
    case OPERAND:                                                                                  \
        for (size_t i = 0; i < v->dest.nelems; i++) {                                              \
            T folded = members ? ((const T *)(const void *)proposals[0].source)[i] : 0;            \
            for (int member = 1; member < members; member++)                                       \
                folded = (T)(folded OP ((const T *)(const void *)proposals[member].source)[i]);    \
            ((T *)(void *)v->dest.data)[i] = folded;                                               \
        }                                                                                          \
        break;
#define FOLD_sum(OPERAND, N, T) FOLD_ROW(OPERAND, T, +)
#define FOLD_and(OPERAND, N, T) FOLD_ROW(OPERAND, T, &)
#define FOLD_or(OPERAND, N, T)  FOLD_ROW(OPERAND, T, |)
#define FOLD_xor(OPERAND, N, T) FOLD_ROW(OPERAND, T, ^)
#define FOLD(NAME, TYPES)                                                                          \
    static void fold_##NAME(const struct pyweft_vectors *v,                                        \
                            const struct pyweft_proposal *proposals, int members) {                \
        switch ((int)v->dest.dtype->operand) {                                                     \
            TYPES(FOLD_##NAME)                                                                     \
        }                                                                                          \
    }
/* clang-format on */
FOLD(sum, SUMMED)
FOLD(and, WHOLE)
FOLD(or, WHOLE)
FOLD(xor, WHOLE)

/* --- The calls of Python --------------------------------------------------------------------- */

static bool take(struct pyweft_vectors *v, PyObject *dest, PyObject *source,
                 bool (*fits)(const struct pyweft_dtype_row *), const char *types) {
    if (!pyweft_vectors_take(v, dest, source) ||
        !pyweft_array_check_nelems(v->on.call, "dest", &v->dest, v->source.nelems,
                                   "as many as source has"))
        return false;
    if (fits(v->dest.dtype))
        return pyweft_vectors_check_symmetric(v, v->dest.bytes, v->source.bytes, true);
    PyErr_Format(PyExc_ValueError, "%s: argument dest is of %s: pass %s", v->on.call,
                 v->dest.dtype->name, types);
    return false;
}

static const struct {
    pyweft_vectors_plain *call;
    void (*fold)(const struct pyweft_vectors *, const struct pyweft_proposal *, int);
} calls[] = {
    [PYWEFT_CALL_AND] = {and_now, fold_and},       [PYWEFT_CALL_OR] = {or_now, fold_or},
    [PYWEFT_CALL_XOR] = {xor_now, fold_xor},       [PYWEFT_CALL_INSCAN] = {inscan_now, fold_sum},
    [PYWEFT_CALL_EXSCAN] = {exscan_now, fold_sum},
};

/* Returns how many members' sources contribute to this member's dest. */
static int count_folded(const struct pyweft_vectors *v, enum pyweft_proposed_call which) {
    int rank = shmem_team_my_pe(v->on.team);
    return which == PYWEFT_CALL_INSCAN ? rank + 1 : which == PYWEFT_CALL_EXSCAN ? rank : v->on.size;
}

static PyObject *run(struct pyweft_vectors *v, bool right, enum pyweft_proposed_call which) {
    const int64_t numbers[] = {(int64_t)v->source.nelems};
    bool carried;
    struct pyweft_proposal *proposals = pyweft_vectors_agree(v, right, which, numbers, 1, &carried);
    if (!proposals)
        return NULL;
    if (carried)
        calls[which].fold(v, proposals, count_folded(v, which));
    PyMem_Free(proposals);
    return pyweft_vectors_finish(v, carried ? NULL : calls[which].call);
}

static PyObject *scan(const struct pyweft_signature *signature, PyObject *const *args,
                      Py_ssize_t nargs, PyObject *names, enum pyweft_proposed_call which) {
    struct pyweft_vectors v = {.on.call = signature->call};
    PyObject *in[3];
    bool right = pyweft_arguments_sort(signature, args, nargs, names, in);
    if (!pyweft_operator_open(&v.on, in[2], NULL))
        return NULL;
    right = right && take(&v, in[0], in[1], is_summed,
                          "whole numbers, float32, float64, complex64 or complex128");
    return run(&v, right, which);
}

PYWEFT_FUNCTION(inscan) {
    static const struct pyweft_signature signature = {"inscan", 1, 2, {"dest", "source", "team"}};
    (void)self;
    return scan(&signature, args, nargs, names, PYWEFT_CALL_INSCAN);
}

PYWEFT_FUNCTION(exscan) {
    static const struct pyweft_signature signature = {"exscan", 1, 2, {"dest", "source", "team"}};
    (void)self;
    return scan(&signature, args, nargs, names, PYWEFT_CALL_EXSCAN);
}

PyObject *pyweft_bitwise_reduce(struct pyweft_vectors *v, PyObject *dest, PyObject *source,
                                int bitwise) {
    bool right = take(v, dest, source, has_bits, "whole numbers");
    if (right && v->on.stream != WEFT_STREAM_HOST) {
        PyErr_Format(PyExc_NotImplementedError,
                     "%s: argument op is 'and', 'or' or 'xor', which streams do not support: leave "
                     "out stream",
                     v->on.call);
        right = false;
    }
    return run(v, right, (enum pyweft_proposed_call)bitwise);
}

#define SYMMETRIC                                                                              \
    "\n\nCollective over the team. dest and source are symmetric, in either space, the same\n" \
    "objects on all members; elements are integers, float32, float64, complex64 or\n"          \
    "complex128. A wrong argument on one member is a ValueError on all, before anything\n"     \
    "is written. RuntimeError: before init(), after finalize(), or a peer failed."

PyMethodDef pyweft_scan_methods[] = {
    PYWEFT_METHOD(inscan,
                  "inscan(dest, source=None, *, team=None)\n--\n\n"
                  "dest[i] = the sum of source[i] over the members up to and including this one.\n"
                  "Without a source, dest is used." SYMMETRIC),
    PYWEFT_METHOD(
        exscan, "exscan(dest, source=None, *, team=None)\n--\n\n"
                "dest[i] = the sum of source[i] over the members before this one, 0 on the first.\n"
                "Without a source, dest is used." SYMMETRIC),
    {NULL, NULL, 0, NULL},
};
