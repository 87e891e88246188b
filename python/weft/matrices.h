/* SPDX-License-Identifier: BSD-3-Clause */
/* Arguments of matrix products: matrices, scales and biases, single or in a list. */
#ifndef PYWEFT_MATRICES_H
#define PYWEFT_MATRICES_H

#include "operator.h"

/* The kinds of arguments. The kind decides which types and shapes are accepted. */
enum pyweft_matrix_kind {
    PYWEFT_MATRIX_PLAIN,      /* float32, float64, bfloat16, float16 */
    PYWEFT_MATRIX_EIGHT_BITS, /* float8 */
    PYWEFT_MATRIX_ROW_SCALES, /* a number, or float32: one number, or one for each row */
    PYWEFT_MATRIX_COL_SCALES, /* a number, or float32: one number, or one for each column */
    PYWEFT_MATRIX_BIAS, /* one number for each column: float32, bfloat16 or float16; None for no
                           bias */
};

/* The arrays are held until pyweft_matrices_drop. A struct of zeros is empty. */
struct pyweft_matrices {
    size_t count;
    struct pyweft_array *arrays;
    weft_matrix *matrices;
    float *numbers; /* scales that were passed as Python numbers */
};

/* Takes one array, or a list or tuple of arrays. */
bool pyweft_matrices_take(struct pyweft_matrices *all, const struct pyweft_operator *on,
                          const char *name, PyObject *object, enum pyweft_array_use use,
                          enum pyweft_matrix_kind kind);

/* Takes a single array. NULL and None leave the struct empty. */
bool pyweft_matrices_take_one(struct pyweft_matrices *all, const struct pyweft_operator *on,
                              const char *name, PyObject *object, enum pyweft_array_use use,
                              enum pyweft_matrix_kind kind);

/* Returns the first matrix, or NULL if the struct is empty. */
weft_matrix *pyweft_matrices_one(const struct pyweft_matrices *all);

void pyweft_matrices_drop(struct pyweft_matrices *all);

#endif
