/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions shared by the sources of arrays. */
#include "array_source.h"

/* Returns the distance between the lines of a matrix, or 0 unless each line is contiguous and the
 * lines do not overlap. `step` and `within` are the strides from line to line and in a line. */
static size_t line_distance(int64_t lines, int64_t nelems, int64_t step, int64_t within) {
    if ((nelems != 1 && within != 1) || (lines != 1 && step < nelems))
        return 0;
    return (size_t)(lines == 1 ? nelems : step);
}

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
    if (array->contiguous) {
        array->ld = shape[1] > 0 ? array->cols : 1; /* 0 means no matrix */
        return;
    }
    array->ld = line_distance(shape[0], shape[1], strides[0], strides[1]);
    if (array->ld > 0)
        return;
    array->ld = line_distance(shape[1], shape[0], strides[1], strides[0]);
    array->transposed = array->ld > 0;
}

bool pyweft_array_refuse_type(const struct pyweft_request *request, const char *what,
                              const char *detail) {
    PyErr_Format(PyExc_ValueError,
                 "%s: argument %s has elements of %s %s, a type that Weft does not support",
                 request->call, request->name, what, detail);
    return false;
}
