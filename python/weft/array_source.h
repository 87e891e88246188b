/* SPDX-License-Identifier: BSD-3-Clause */
/* The ways in which objects of other libraries show their memory, as array.c asks for them. Each
 * fills the array in, or returns false: with an exception, or without where the object does not
 * know this way. */
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

/* Shape and strides, in elements (NULL: as in C), become what the calls ask for. Dimensions of one
 * element may have any stride. The type is known already. */
void pyweft_array_set_shape(struct pyweft_array *array, int ndim, const int64_t *shape,
                            const int64_t *strides);

/* ValueError for a type that is not in the table; false. */
bool pyweft_array_refuse_type(const struct pyweft_request *request, const char *what,
                              const char *detail);

#endif
