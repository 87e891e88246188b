/* SPDX-License-Identifier: BSD-3-Clause */
/* Bitwise reductions, for all_reduce. */
#ifndef PYWEFT_SCAN_H
#define PYWEFT_SCAN_H

#include "vectors.h"

/* Reduces symmetric arrays by "and" (0), "or" (1) or "xor" (2). The operator must be open. */
PyObject *pyweft_bitwise_reduce(struct pyweft_vectors *vectors, PyObject *dest, PyObject *source,
                                int bitwise);

#endif
