/* SPDX-License-Identifier: BSD-3-Clause */
/* Conversion between one element in memory, of any type, and a Python number.
 *
 * Integers and bool (0 or 1) are read as int and bool, complex types as complex, all other types as
 * float. A number may lose precision when it is stored, but not its kind: an int may be stored as
 * float, a float as complex, never the reverse. Rounding is to nearest, ties to even; a number that
 * is too large for a float type becomes infinite (NaN in float8_e4m3fn). */
#ifndef PYWEFT_ELEMENT_H
#define PYWEFT_ELEMENT_H

#include "dtype.h"

#define PYWEFT_ELEMENT_BYTES_MAX 16

/* Read and copy one aligned element with a single access, so that a peer's concurrent write is seen
 * as a whole or not at all. */
PyObject *pyweft_element_read(const struct pyweft_dtype_row *dtype, const char *at);
void pyweft_element_copy(char *to, const char *from, size_t bytes);

/* Stores the number in `to`, which need not be aligned, as an element of this type. Returns false
 * with TypeError if the object is not a number or has the wrong kind, or OverflowError for an
 * integer that is out of range. */
bool pyweft_element_make(const char *call, const struct pyweft_dtype_row *dtype, PyObject *number,
                         char *to);

/* Convert an element to another type. check_kinds returns false with TypeError if the kinds do not
 * fit; convert returns false with OverflowError if the number is out of range. */
bool pyweft_element_check_kinds(const struct pyweft_dtype_row *to,
                                const struct pyweft_dtype_row *from);
bool pyweft_element_convert(const struct pyweft_dtype_row *to_dtype, char *to,
                            const struct pyweft_dtype_row *from_dtype, const char *from);

/* Returns the shortest text that reads back as this element, in Python's notation. */
PyObject *pyweft_element_text(const struct pyweft_dtype_row *dtype, const char *at);

#endif
