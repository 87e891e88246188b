/* SPDX-License-Identifier: BSD-3-Clause */
/* One element in memory, of any type, and the Python number that it stands for.
 *
 * Whole numbers and bool (which is 0 or 1) are read as int and bool, complex types as complex, all
 * other types as float. A number goes into an element where that loses no more than digits: int
 * into float, float into complex, never the other way round. What rounds is rounded to the nearest,
 * ties to even; what is too large for a float becomes infinite (float8_e4m3fn: NaN). */
#ifndef PYWEFT_ELEMENT_H
#define PYWEFT_ELEMENT_H

#include "dtype.h"

#define PYWEFT_ELEMENT_BYTES_MAX 16

/* The element at `at`, which is aligned: it is read and written whole, so that a peer that looks
 * at the same time sees the one or the other. */
PyObject *pyweft_element_read(const struct pyweft_dtype_row *dtype, const char *at);
void pyweft_element_copy(char *to, const char *from, size_t bytes);

/* The element that the number becomes, in `to`, which need not be aligned. TypeError for what is no
 * number of a kind that fits, OverflowError for a whole number out of the type's range. */
bool pyweft_element_make(const char *call, const struct pyweft_dtype_row *dtype, PyObject *number,
                         char *to);

/* Elements of one type as another, one behind the other in `to`; TypeError where the kind does not
 * fit, OverflowError where a number does not. */
bool pyweft_element_check_kinds(const struct pyweft_dtype_row *to,
                                const struct pyweft_dtype_row *from);
bool pyweft_element_convert(const struct pyweft_dtype_row *to_dtype, char *to,
                            const struct pyweft_dtype_row *from_dtype, const char *from);

/* The shortest text that reads as this element, as Python writes numbers. */
PyObject *pyweft_element_text(const struct pyweft_dtype_row *dtype, const char *at);

#endif
