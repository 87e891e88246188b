/* SPDX-License-Identifier: BSD-3-Clause */
/* What is assigned to elements of a Buffer, as elements of its type in private memory. */
#ifndef WEFT_PYTHON_VALUE_H
#define WEFT_PYTHON_VALUE_H

#include "array.h"
#include "element.h"
#include "part.h"

struct weft_value {
    struct weft_part part;
    bool gpu; /* the elements lie in memory of a GPU, one behind the other, and are of the type */
    struct weft_array array;
    char *owned; /* memory of our own, or NULL */
    _Alignas(16) char element[WEFT_ELEMENT_BYTES_MAX];
};

/* A number; an array of any library; or a sequence of these, nested as deep as there are
 * dimensions. Elements become those of `dtype` as element.h says. More elements than can be
 * stretched to `to`, where this is not NULL, are refused before memory is taken for them. Has to be
 * dropped also where it fails: TypeError, ValueError, OverflowError, MemoryError. */
bool weft_value_take(struct weft_value *value, const struct weft_dtype_row *dtype,
                     const struct weft_part *to, PyObject *object);

/* A value that is `gpu` becomes one in memory of our own: that of a Buffer. ValueError for another
 * library's array; MemoryError. */
bool weft_value_bring(struct weft_value *value, const struct weft_dtype_row *dtype,
                      PyObject *object);

/* Stretches a value in memory of the host to `to`, which is about to be written. Elements that
 * would be overwritten before they are read are copied to memory of our own first; `alias` says
 * that `to` may lie at other addresses, too. ValueError, MemoryError. */
bool weft_value_stretch(struct weft_value *value, const struct weft_part *to, bool alias);

/* All elements of a Buffer, in memory of our own. Has to be dropped. */
struct weft_buffer;
bool weft_value_fetch(struct weft_value *value, const struct weft_buffer *buffer);

void weft_value_drop(struct weft_value *value);

#endif
