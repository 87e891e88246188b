/* SPDX-License-Identifier: BSD-3-Clause */
/* Reductions by bits, for all_reduce. */
#ifndef WEFT_PYTHON_SCAN_H
#define WEFT_PYTHON_SCAN_H

#include "vectors.h"

/* Whether op is "and", "or" or "xor", and which. */
bool weft_bitwise_find(PyObject *op, int *bitwise);

/* all_reduce by such an op, of symmetric arrays. The operator is open. */
PyObject *weft_bitwise_reduce(struct weft_vectors *vectors, PyObject *dest, PyObject *source,
                              int bitwise);

#endif
