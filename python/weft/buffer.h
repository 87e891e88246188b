/* SPDX-License-Identifier: BSD-3-Clause */
/* weft.Buffer: elements of one type in a shape, over a piece of memory. Those that are made lie as
 * in C, one behind the other; those that a slice makes may lie apart. */
#ifndef WEFT_PYTHON_BUFFER_H
#define WEFT_PYTHON_BUFFER_H

#include "dtype.h"
#include "memory.h"
#include "part.h"

struct weft_buffer {
    PyObject_HEAD PyObject *weak;
    struct weft_memory *memory;
    const struct weft_dtype_row *dtype;
    struct weft_part part;
    int pe;          /* whose copy of symmetric memory it shows */
    ptrdiff_t shift; /* from this PE's own copy to that one */
};

/* A number or a sequence of numbers. ValueError. */
bool weft_shape_read(const char *call, PyObject *object, struct weft_shape *shape);

/* NULL if the object is no Buffer. */
struct weft_buffer *weft_buffer_of(PyObject *object);

/* A Buffer at `data` in the memory, which it holds. */
PyObject *weft_buffer_make(struct weft_memory *memory, char *data,
                           const struct weft_dtype_row *dtype, const struct weft_shape *shape);

/* A Buffer of a part of this one. */
PyObject *weft_buffer_make_part(const struct weft_buffer *buffer, const struct weft_part *part);

/* What Buffer.view and its like share: `in` is shape, dtype and offset, each NULL where it is not
 * given, over the `bytes` at `data`. A shape of None is all that is left, in one dimension. */
PyObject *weft_buffer_view(const char *call, struct weft_memory *memory, char *data, size_t bytes,
                           const struct weft_dtype_row *dtype, PyObject *const *in);

/* What makes it an array (subscript.c). */
PyObject *weft_buffer_subscript(PyObject *self, PyObject *key);
PyObject *weft_buffer_item(PyObject *self, Py_ssize_t at);
int weft_buffer_assign(PyObject *self, PyObject *key, PyObject *value);
PyObject *weft_buffer_iterate(PyObject *self);
PyObject *weft_buffer_tolist(PyObject *self, PyObject *unused);
PyObject *weft_buffer_fill(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
                           PyObject *names);

/* The values as text, abbreviated where there are many; "" and no exception where they cannot be
 * read now. */
PyObject *weft_buffer_text(const struct weft_buffer *buffer);

/* What a Buffer gives to others (export.c). */
PyObject *weft_buffer_numpy(PyObject *self, PyObject *unused);
PyObject *weft_buffer_array(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
                            PyObject *names);
PyObject *weft_buffer_dlpack(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
                             PyObject *names);
PyObject *weft_buffer_dlpack_device(PyObject *self, PyObject *unused);
PyObject *weft_buffer_cuda_array_interface(PyObject *self, void *unused);
int weft_buffer_get(PyObject *self, Py_buffer *view, int flags);
void weft_buffer_release(PyObject *self, Py_buffer *view);

#endif
