/* SPDX-License-Identifier: BSD-3-Clause */
/* What is assigned to elements of a Buffer, as elements of its type in private memory. */
#ifndef PYWEFT_VALUE_H
#define PYWEFT_VALUE_H

#include "array.h"
#include "element.h"
#include "part.h"

struct pyweft_value {
    struct pyweft_part part;
    bool gpu; /* the elements lie in memory of a GPU, one behind the other, and are of the type */
    struct pyweft_array array;
    char *owned; /* memory of our own, or NULL */
    _Alignas(16) char element[PYWEFT_ELEMENT_BYTES_MAX];
};

/* A number; an array of any library; or a sequence of these, nested as deep as there are
 * dimensions. Elements become those of `dtype` as element.h says. More elements than can be
 * stretched to `to`, where this is not NULL, are refused before memory is taken for them. Has to be
 * dropped also where it fails: TypeError, ValueError, OverflowError, MemoryError. */
bool pyweft_value_take(struct pyweft_value *value, const struct pyweft_dtype_row *dtype,
                       const struct pyweft_part *to, PyObject *object);

/* A value that is `gpu` becomes one in memory of our own: that of a Buffer. ValueError for another
 * library's array; MemoryError. */
bool pyweft_value_bring(struct pyweft_value *value, const struct pyweft_dtype_row *dtype,
                        PyObject *object);

/* Stretches a value in memory of the host to `to`, which is about to be written. Elements that
 * would be overwritten before they are read are copied to memory of our own first; `alias` says
 * that `to` may lie at other addresses, too. ValueError, MemoryError. */
bool pyweft_value_stretch(struct pyweft_value *value, const struct pyweft_part *to, bool alias);

/* All elements of a Buffer, in memory of our own. Has to be dropped. */
struct pyweft_buffer;
bool pyweft_value_fetch(struct pyweft_value *value, const struct pyweft_buffer *buffer);

void pyweft_value_drop(struct pyweft_value *value);

#endif
