/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions shared by the sources of arrays. */
#include "array_source.h"

void pyweft_array_set_shape(struct pyweft_array *array, int ndim, const int64_t *shape,
                            const int64_t *strides) {
    int64_t next = 1;
    array->ndim = ndim;
    array->nelems = 1;
    array->contiguous = true;
    for (int i = ndim - 1; i >= 0; i--) {
        if (i < PYWEFT_DIMS_MAX) {
            array->shape[i] = shape[i];
            array->strides[i] = strides ? strides[i] : next;
        }
        if (strides && shape[i] != 1 && strides[i] != next)
            array->contiguous = false;
        next *= shape[i];
        array->nelems *= (size_t)shape[i];
    }
    array->contiguous |= array->nelems == 0;
    array->bytes = array->nelems * array->dtype->bytes;
    if (ndim != 2)
        return;
    array->rows = (size_t)shape[0];
    array->cols = (size_t)shape[1];
    bool whole = array->contiguous || shape[1] == 1 || strides[1] == 1;
    bool apart = array->contiguous || shape[0] == 1 || strides[0] >= shape[1];
    if (whole && apart)
        array->ld = array->contiguous || shape[0] == 1 ? array->cols : (size_t)strides[0];
    if (whole && apart && array->ld == 0)
        array->ld = 1; /* there are no columns, so any value will do but 0, which means no matrix */
}

bool pyweft_array_refuse_type(const struct pyweft_request *request, const char *what,
                              const char *detail) {
    PyErr_Format(PyExc_ValueError,
                 "%s: argument %s has elements of %s %s, a type that Weft does not support",
                 request->call, request->name, what, detail);
    return false;
}
