/* SPDX-License-Identifier: BSD-3-Clause */
/* weft.Buffer: a shaped view of typed elements in a piece of memory. A new Buffer is contiguous in
 * C order; a Buffer made by a slice may have any strides. */
#ifndef PYWEFT_BUFFER_H
#define PYWEFT_BUFFER_H

#include "dtype.h"
#include "memory.h"
#include "part.h"

struct pyweft_buffer {
    PyObject_HEAD PyObject *weak;
    struct pyweft_memory *memory;
    const struct pyweft_dtype_row *dtype;
    struct pyweft_part part;
    int pe;          /* whose copy of symmetric memory this shows */
    ptrdiff_t shift; /* bytes from this PE's own copy to that one */
};

/* Reads a number, or a sequence of numbers, as a shape. Returns false with ValueError or
 * TypeError. */
bool pyweft_shape_read(const char *call, PyObject *object, struct pyweft_shape *shape);

extern PyTypeObject *pyweft_buffer_type; /* set by pyweft_buffer_define */

/* Returns the object as a Buffer, or NULL if it is not a Buffer. */
struct pyweft_buffer *pyweft_buffer_of(PyObject *object);

/* Makes a Buffer at `data`, inside the memory, and takes a reference to the memory. */
PyObject *pyweft_buffer_make(struct pyweft_memory *memory, char *data,
                             const struct pyweft_dtype_row *dtype,
                             const struct pyweft_shape *shape);

/* Makes a Buffer of a part of another Buffer. */
PyObject *pyweft_buffer_make_part(const struct pyweft_buffer *buffer,
                                  const struct pyweft_part *part);

/* Makes the Buffer for Buffer.view, Block.view and Share.view, over the `bytes` at `data`. in[]
 * holds the arguments shape, dtype and offset, NULL if not given. Without a shape the Buffer has
 * one dimension, with all the elements after the offset. */
PyObject *pyweft_buffer_view(const char *call, struct pyweft_memory *memory, char *data,
                             size_t bytes, const struct pyweft_dtype_row *dtype,
                             PyObject *const *in);

/* The indexing methods (subscript.c). */
PyObject *pyweft_buffer_subscript(PyObject *self, PyObject *key);
PyObject *pyweft_buffer_item(PyObject *self, Py_ssize_t at);
int pyweft_buffer_assign(PyObject *self, PyObject *key, PyObject *value);
PyObject *pyweft_buffer_iterate(PyObject *self);
PyObject *pyweft_buffer_tolist(PyObject *self, PyObject *unused);
PyObject *pyweft_buffer_fill(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
                             PyObject *names);

/* Returns the values as text, abbreviated if there are many. Returns "" without an exception if
 * they cannot be read at the moment. */
PyObject *pyweft_buffer_text(const struct pyweft_buffer *buffer);

/* The methods that other libraries call (export.c). */
PyObject *pyweft_buffer_numpy(PyObject *self, PyObject *unused);
PyObject *pyweft_buffer_array(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
                              PyObject *names);
PyObject *pyweft_buffer_dlpack(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
                               PyObject *names);
PyObject *pyweft_buffer_dlpack_device(PyObject *self, PyObject *unused);
PyObject *pyweft_buffer_cuda_array_interface(PyObject *self, void *unused);
int pyweft_buffer_get(PyObject *self, Py_buffer *view, int flags);
void pyweft_buffer_release(PyObject *self, Py_buffer *view);

#endif
