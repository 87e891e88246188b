/* SPDX-License-Identifier: BSD-3-Clause */
/* Arguments of matrix products: matrices, scales and biases, one or a list of them. */
#ifndef WEFT_PYTHON_MATRICES_H
#define WEFT_PYTHON_MATRICES_H

#include "operator.h"

/* What an argument is, which says what it may look like. */
enum weft_matrix_kind {
    WEFT_MATRIX_PLAIN,      /* float32, float64, bfloat16, float16 */
    WEFT_MATRIX_EIGHT_BITS, /* float8 */
    WEFT_MATRIX_ROW_SCALES, /* a number, or float32: one, or one a row */
    WEFT_MATRIX_COL_SCALES, /* the same, or one a column */
    WEFT_MATRIX_BIAS,       /* a number a column, of float32, bfloat16 or float16; None is none */
};

/* Arrays are held until weft_matrices_drop. Of zeros: nothing. */
struct weft_matrices {
    size_t count;
    struct weft_array *arrays;
    weft_matrix *matrices;
    float *numbers; /* scales that are given as such */
};

/* One array, or a list or tuple of any number. */
bool weft_matrices_take(struct weft_matrices *all, const struct weft_operator *on, const char *name,
                        PyObject *object, enum weft_array_use use, enum weft_matrix_kind kind);

/* One array alone; `matrices[0]` is it. None (or NULL) leaves count 0. */
bool weft_matrices_take_one(struct weft_matrices *all, const struct weft_operator *on,
                            const char *name, PyObject *object, enum weft_array_use use,
                            enum weft_matrix_kind kind);

/* The one; NULL if there is none. */
weft_matrix *weft_matrices_one(const struct weft_matrices *all);

void weft_matrices_drop(struct weft_matrices *all);

#endif
