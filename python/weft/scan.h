/* SPDX-License-Identifier: BSD-3-Clause */
/* Reductions by bits, for all_reduce. */
#ifndef PYWEFT_SCAN_H
#define PYWEFT_SCAN_H

#include "vectors.h"

/* all_reduce by "and" (0), "or" (1) or "xor" (2), of symmetric arrays. The operator is open. */
PyObject *pyweft_bitwise_reduce(struct pyweft_vectors *vectors, PyObject *dest, PyObject *source,
                                int bitwise);

#endif
