/* SPDX-License-Identifier: BSD-3-Clause */
/* The right side of an assignment to elements of a Buffer, converted to the Buffer's type. */
#ifndef PYWEFT_VALUE_H
#define PYWEFT_VALUE_H

#include "array.h"
#include "element.h"
#include "part.h"

struct pyweft_value {
    struct pyweft_part part;
    bool gpu; /* the elements are in GPU memory, contiguous, and have the right type */
    struct pyweft_array array;
    char *owned; /* allocated here, or NULL */
    _Alignas(16) char element[PYWEFT_ELEMENT_BYTES_MAX];
};

/* Takes a number, an array of any library, or a nested sequence of them, and converts the elements
 * to `dtype` (see element.h). If `to` is not NULL, a value with too many elements for it is refused
 * before memory is allocated. The value must be dropped even on failure. Returns false with
 * TypeError, ValueError, OverflowError or MemoryError. */
bool pyweft_value_take(struct pyweft_value *value, const struct pyweft_dtype_row *dtype,
                       const struct pyweft_part *to, PyObject *object);

/* Copies a value in GPU memory to host memory. Returns false with ValueError unless the object is a
 * Buffer, with TypeError or OverflowError if its elements cannot be converted, or with
 * MemoryError. */
bool pyweft_value_bring(struct pyweft_value *value, const struct pyweft_dtype_row *dtype,
                        PyObject *object);

/* Broadcasts a value in host memory to `to`, which is about to be written. If the write could
 * overwrite elements before they are read, copies them first; `alias` says that `to` may be mapped
 * at other addresses, too. Returns false with ValueError or MemoryError. */
bool pyweft_value_stretch(struct pyweft_value *value, const struct pyweft_part *to, bool alias);

/* Copies all elements of a Buffer to memory allocated here. The value must be dropped. */
struct pyweft_buffer;
bool pyweft_value_fetch(struct pyweft_value *value, const struct pyweft_buffer *buffer);

void pyweft_value_drop(struct pyweft_value *value);

#endif
