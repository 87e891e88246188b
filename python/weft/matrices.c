/* SPDX-License-Identifier: BSD-3-Clause */
/* Converts arrays to the library's matrices. */
#include "matrices.h"
#include <stdlib.h>

enum { MATRICES_MAX = 64 };

/* --- Types ----------------------------------------------------------------------------------- */

static const char *const expected[] = {
    [PYWEFT_MATRIX_PLAIN] = "float32, float64, bfloat16 or float16",
    [PYWEFT_MATRIX_EIGHT_BITS] = "float8_e4m3fn or float8_e5m2",
    [PYWEFT_MATRIX_ROW_SCALES] = "float32",
    [PYWEFT_MATRIX_COL_SCALES] = "float32",
    [PYWEFT_MATRIX_BIAS] = "float32, bfloat16 or float16",
};

static bool fits(weft_dtype dtype, enum pyweft_matrix_kind kind) {
    switch (kind) {
    case PYWEFT_MATRIX_PLAIN:
        return dtype == WEFT_F32 || dtype == WEFT_F64 || dtype == WEFT_BF16 || dtype == WEFT_F16;
    case PYWEFT_MATRIX_EIGHT_BITS:
        return dtype == WEFT_F8E4M3 || dtype == WEFT_F8E5M2;
    case PYWEFT_MATRIX_ROW_SCALES:
    case PYWEFT_MATRIX_COL_SCALES:
        return dtype == WEFT_F32;
    case PYWEFT_MATRIX_BIAS:
        return dtype == WEFT_F32 || dtype == WEFT_BF16 || dtype == WEFT_F16;
    }
    return false;
}

static bool check_type(const struct pyweft_operator *on, const char *name,
                       const struct pyweft_array *array, enum pyweft_matrix_kind kind) {
    if (fits(array->dtype->operand, kind))
        return true;
    PyErr_Format(PyExc_ValueError, "%s: argument %s is of %s: pass %s", on->call, name,
                 array->dtype->name, expected[kind]);
    return false;
}

/* --- A single matrix -------------------------------------------------------------------------- */

/* The fields for one of the matrices. */
struct slot {
    struct pyweft_array *array;
    weft_matrix *matrix;
    float *number;
};

static struct slot slot_of(const struct pyweft_matrices *all, size_t i) {
    return (struct slot){&all->arrays[i], &all->matrices[i], &all->numbers[i]};
}

static bool is_scale(enum pyweft_matrix_kind kind) {
    return kind == PYWEFT_MATRIX_ROW_SCALES || kind == PYWEFT_MATRIX_COL_SCALES;
}

static bool take_number(const struct slot *slot, PyObject *object) {
    *slot->number = (float)PyFloat_AsDouble(object);
    *slot->matrix = (weft_matrix){slot->number, 1, 1, 1, WEFT_F32, false};
    return !PyErr_Occurred();
}

/* Takes the numbers of an array of any shape. */
static bool take_vector(const struct slot *slot, const struct pyweft_operator *on, const char *name,
                        PyObject *object, enum pyweft_matrix_kind kind) {
    struct pyweft_array *array = slot->array;
    if (!pyweft_array_take(array, on->call, name, object, PYWEFT_ARRAY_READ, on->stream) ||
        !check_type(on, name, array, kind))
        return false;
    bool by_rows = kind == PYWEFT_MATRIX_ROW_SCALES;
    *slot->matrix = (weft_matrix){.data = array->data,
                                  .rows = by_rows ? array->nelems : 1,
                                  .cols = by_rows ? 1 : array->nelems,
                                  .ld = by_rows ? 1 : array->nelems,
                                  .dtype = array->dtype->operand};
    return true;
}

static bool take_matrix(const struct slot *slot, const struct pyweft_operator *on, const char *name,
                        PyObject *object, enum pyweft_array_use use, enum pyweft_matrix_kind kind) {
    struct pyweft_array *array = slot->array;
    if (!pyweft_array_take_matrix(array, on->call, name, object, use, on->stream) ||
        !check_type(on, name, array, kind))
        return false;
    *slot->matrix = (weft_matrix){.data = array->data,
                                  .rows = array->rows,
                                  .cols = array->cols,
                                  .ld = array->ld,
                                  .dtype = array->dtype->operand,
                                  .transposed = array->transposed};
    return true;
}

static bool take(const struct slot *slot, const struct pyweft_operator *on, const char *name,
                 PyObject *object, enum pyweft_array_use use, enum pyweft_matrix_kind kind) {
    if (kind == PYWEFT_MATRIX_BIAS && object == Py_None) {
        *slot->matrix = (weft_matrix){.rows = 1, .dtype = WEFT_F32};
        return true;
    }
    if (is_scale(kind) && (PyFloat_Check(object) || PyLong_Check(object)))
        return take_number(slot, object);
    if (is_scale(kind) || kind == PYWEFT_MATRIX_BIAS)
        return take_vector(slot, on, name, object, kind);
    return take_matrix(slot, on, name, object, use, kind);
}

/* --- A single matrix or a list ---------------------------------------------------------------- */

static bool make_room(struct pyweft_matrices *all, size_t count) {
    all->count = count;
    all->arrays = calloc(count + 1, sizeof *all->arrays);
    all->matrices = calloc(count + 1, sizeof *all->matrices);
    all->numbers = calloc(count + 1, sizeof *all->numbers);
    if (all->arrays && all->matrices && all->numbers)
        return true;
    PyErr_NoMemory();
    return false;
}

bool pyweft_matrices_take_one(struct pyweft_matrices *all, const struct pyweft_operator *on,
                              const char *name, PyObject *object, enum pyweft_array_use use,
                              enum pyweft_matrix_kind kind) {
    if (!object || object == Py_None)
        return true;
    if (!make_room(all, 1))
        return false;
    struct slot slot = slot_of(all, 0);
    return take(&slot, on, name, object, use, kind);
}

static bool take_each(struct pyweft_matrices *all, const struct pyweft_operator *on,
                      const char *name, PyObject *list, enum pyweft_array_use use,
                      enum pyweft_matrix_kind kind) {
    char text[32];
    for (size_t i = 0; i < all->count; i++) {
        struct slot slot = slot_of(all, i);
        PyOS_snprintf(text, sizeof text, "%s[%zu]", name, i);
        PyObject *one = PySequence_GetItem(list, (Py_ssize_t)i);
        bool right = one && take(&slot, on, text, one, use, kind);
        Py_XDECREF(one);
        if (!right)
            return false;
    }
    return true;
}

bool pyweft_matrices_take(struct pyweft_matrices *all, const struct pyweft_operator *on,
                          const char *name, PyObject *object, enum pyweft_array_use use,
                          enum pyweft_matrix_kind kind) {
    if (!PyList_Check(object) && !PyTuple_Check(object))
        return pyweft_matrices_take_one(all, on, name, object, use, kind);
    Py_ssize_t count = PySequence_Size(object);
    if (count > MATRICES_MAX) {
        PyErr_Format(PyExc_ValueError, "%s: argument %s has %zd matrices: pass at most %d",
                     on->call, name, count, MATRICES_MAX);
        return false;
    }
    return make_room(all, (size_t)count) && take_each(all, on, name, object, use, kind);
}

weft_matrix *pyweft_matrices_one(const struct pyweft_matrices *all) {
    return all->count ? all->matrices : NULL;
}

void pyweft_matrices_drop(struct pyweft_matrices *all) {
    for (size_t i = 0; all->arrays && i < all->count; i++)
        pyweft_array_drop(&all->arrays[i]);
    free(all->arrays);
    free(all->matrices);
    free(all->numbers);
}
