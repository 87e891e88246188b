/* SPDX-License-Identifier: BSD-3-Clause */
/* Element types, and their names in each of the protocols for exchanging arrays. */
#ifndef PYWEFT_DTYPE_H
#define PYWEFT_DTYPE_H

#include "module.h"

struct pyweft_dtype_row {
    const char *name;    /* numpy's and torch's name: "float32" */
    size_t bytes;        /* of one element */
    uint8_t dlpack;      /* DLPack's type code; the number of bits follows from `bytes` */
    const char *format;  /* in the buffer protocol, or NULL if it has none */
    const char *typestr; /* in __cuda_array_interface__, or NULL if it has none */
    weft_dtype operand;  /* for Weft's operators */
};

/* Finds a type by a string, or by an object that has a name (a numpy or torch dtype, or Python's
 * float and int). Returns NULL with ValueError if the type is unknown. */
const struct pyweft_dtype_row *pyweft_dtype_find(const char *call, PyObject *name);

/* Find a type by its name in one of the protocols. Return NULL without an exception if it is
 * unknown. */
const struct pyweft_dtype_row *pyweft_dtype_of_dlpack(unsigned code, unsigned bits);
const struct pyweft_dtype_row *pyweft_dtype_of_format(const char *format, size_t bytes);
const struct pyweft_dtype_row *pyweft_dtype_of_typestr(const char *typestr);

#endif
