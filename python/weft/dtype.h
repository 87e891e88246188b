/* SPDX-License-Identifier: BSD-3-Clause */
/* Types of elements, and what each is called by those who show memory to each other. */
#ifndef PYWEFT_DTYPE_H
#define PYWEFT_DTYPE_H

#include "module.h"

struct pyweft_dtype_row {
    const char *name;    /* as numpy and torch have it: "float32" */
    size_t bytes;        /* of one element */
    uint8_t dlpack;      /* DLPack's code; its bits are those of `bytes` */
    const char *format;  /* of the buffer protocol; NULL: it has none */
    const char *typestr; /* of __cuda_array_interface__; NULL: it has none */
    weft_dtype operand;  /* for operators */
};

/* A row by name: a string, or what has one (numpy's and torch's types, Python's float and int).
 * ValueError for a type that is not known. */
const struct pyweft_dtype_row *pyweft_dtype_find(const char *call, PyObject *name);

/* Rows by what others call them; NULL without an exception. */
const struct pyweft_dtype_row *pyweft_dtype_of_dlpack(unsigned code, unsigned bits);
const struct pyweft_dtype_row *pyweft_dtype_of_format(const char *format, size_t bytes);
const struct pyweft_dtype_row *pyweft_dtype_of_typestr(const char *typestr);

#endif
