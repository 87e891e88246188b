/* SPDX-License-Identifier: BSD-3-Clause */
/* Arguments of matrix products: matrices, scales and biases, one or a list of them. */
#ifndef PYWEFT_MATRICES_H
#define PYWEFT_MATRICES_H

#include "operator.h"

/* What an argument is, which says what it may look like. */
enum pyweft_matrix_kind {
    PYWEFT_MATRIX_PLAIN,      /* float32, float64, bfloat16, float16 */
    PYWEFT_MATRIX_EIGHT_BITS, /* float8 */
    PYWEFT_MATRIX_ROW_SCALES, /* a number, or float32: one, or one a row */
    PYWEFT_MATRIX_COL_SCALES, /* the same, or one a column */
    PYWEFT_MATRIX_BIAS,       /* a number a column, of float32, bfloat16 or float16; None is none */
};

/* Arrays are held until pyweft_matrices_drop. Of zeros: nothing. */
struct pyweft_matrices {
    size_t count;
    struct pyweft_array *arrays;
    weft_matrix *matrices;
    float *numbers; /* scales that are given as such */
};

/* One array, or a list or tuple of any number. */
bool pyweft_matrices_take(struct pyweft_matrices *all, const struct pyweft_operator *on,
                          const char *name, PyObject *object, enum pyweft_array_use use,
                          enum pyweft_matrix_kind kind);

/* One array alone; `matrices[0]` is it. None (or NULL) leaves count 0. */
bool pyweft_matrices_take_one(struct pyweft_matrices *all, const struct pyweft_operator *on,
                              const char *name, PyObject *object, enum pyweft_array_use use,
                              enum pyweft_matrix_kind kind);

/* The one; NULL if there is none. */
weft_matrix *pyweft_matrices_one(const struct pyweft_matrices *all);

void pyweft_matrices_drop(struct pyweft_matrices *all);

#endif
