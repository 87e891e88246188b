/* SPDX-License-Identifier: BSD-3-Clause */
/* The three protocols through which other libraries offer their arrays. Each function fills in the
 * array and returns true. If it returns false without an exception, the object does not support
 * this protocol. */
#ifndef PYWEFT_ARRAY_SOURCE_H
#define PYWEFT_ARRAY_SOURCE_H

#include "array.h"

struct pyweft_request {
    const char *call, *name;
    enum pyweft_array_use use;
    weft_stream stream;
};

bool pyweft_array_from_dlpack(struct pyweft_array *array, PyObject *object,
                              const struct pyweft_request *request);
bool pyweft_array_from_cuda(struct pyweft_array *array, PyObject *object,
                            const struct pyweft_request *request);

/* Sets shape and strides, in elements (NULL: C order), and the fields derived from them. A
 * dimension of one element may have any stride. The dtype must be set already. */
void pyweft_array_set_shape(struct pyweft_array *array, int ndim, const int64_t *shape,
                            const int64_t *strides);

/* Raises ValueError: the table of dtype.h lacks the element type. Returns false. */
bool pyweft_array_refuse_type(const struct pyweft_request *request, const char *what,
                              const char *detail);

#endif
