/* SPDX-License-Identifier: BSD-3-Clause */
/* weft.Buffer: elements of one type in a shape, as in C, over a piece of memory. */
#ifndef WEFT_PYTHON_BUFFER_H
#define WEFT_PYTHON_BUFFER_H

#include "dtype.h"
#include "memory.h"

#define WEFT_BUFFER_DIMS_MAX 16

struct weft_buffer {
    PyObject_HEAD PyObject *weak;
    struct weft_memory *memory;
    char *data;
    const struct weft_dtype_row *dtype;
    int ndim;
    size_t nelems, bytes;
    int64_t shape[WEFT_BUFFER_DIMS_MAX];
    int64_t strides[WEFT_BUFFER_DIMS_MAX]; /* in elements */
};

struct weft_shape {
    int ndim;
    size_t nelems;
    int64_t dims[WEFT_BUFFER_DIMS_MAX];
};

/* A number or a sequence of numbers. ValueError. */
bool weft_shape_read(const char *call, PyObject *object, struct weft_shape *shape);

/* NULL if the object is no Buffer. */
struct weft_buffer *weft_buffer_of(PyObject *object);

/* A Buffer at `data` in the memory, which it holds. */
PyObject *weft_buffer_make(struct weft_memory *memory, char *data,
                           const struct weft_dtype_row *dtype, const struct weft_shape *shape);

/* What Buffer.view and its like share: `in` is shape, dtype and offset, each NULL where it is not
 * given, over the `bytes` at `data`. A shape of None is all that is left, in one dimension. */
PyObject *weft_buffer_view(const char *call, struct weft_memory *memory, char *data, size_t bytes,
                           const struct weft_dtype_row *dtype, PyObject *const *in);

/* What a Buffer gives to others (export.c). */
PyObject *weft_buffer_dlpack(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
                             PyObject *names);
PyObject *weft_buffer_dlpack_device(PyObject *self, PyObject *unused);
PyObject *weft_buffer_cuda_array_interface(PyObject *self, void *unused);
int weft_buffer_get(PyObject *self, Py_buffer *view, int flags);
void weft_buffer_release(PyObject *self, Py_buffer *view);

#endif
