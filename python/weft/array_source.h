/* SPDX-License-Identifier: BSD-3-Clause */
/* The ways in which objects of other libraries show their memory, as array.c asks for them. Each
 * fills the array in, or returns false: with an exception, or without where the object does not
 * know this way. */
#ifndef WEFT_PYTHON_ARRAY_SOURCE_H
#define WEFT_PYTHON_ARRAY_SOURCE_H

#include "array.h"

struct weft_question {
    const char *call, *name;
    enum weft_array_use use;
    weft_stream stream;
};

bool weft_array_from_dlpack(struct weft_array *array, PyObject *object,
                            const struct weft_question *question);
bool weft_array_from_cuda(struct weft_array *array, PyObject *object,
                          const struct weft_question *question);

/* Shape and strides, in elements (NULL: as in C), become what the calls ask for. Dimensions of one
 * element may have any stride. The type is known already. */
void weft_array_set_shape(struct weft_array *array, int ndim, const int64_t *shape,
                          const int64_t *strides);

/* ValueError for a type that is not in the table; false. */
bool weft_array_refuse_type(const struct weft_question *question, const char *what,
                            const char *detail);

#endif
