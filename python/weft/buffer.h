/* SPDX-License-Identifier: BSD-3-Clause */
/* weft.Buffer: elements of one type in a shape, over a piece of memory. Those that are made lie as
 * in C, one behind the other; those that a slice makes may lie apart. */
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
    int pe;          /* whose copy of symmetric memory it shows */
    ptrdiff_t shift; /* from this PE's own copy to that one */
};

/* A number or a sequence of numbers. ValueError. */
bool pyweft_shape_read(const char *call, PyObject *object, struct pyweft_shape *shape);

extern PyTypeObject *pyweft_buffer_type; /* set by pyweft_buffer_define */

/* Returns the object as a Buffer, or NULL if it is none. */
struct pyweft_buffer *pyweft_buffer_of(PyObject *object);

/* A Buffer at `data` in the memory, which it holds. */
PyObject *pyweft_buffer_make(struct pyweft_memory *memory, char *data,
                             const struct pyweft_dtype_row *dtype,
                             const struct pyweft_shape *shape);

/* A Buffer of a part of this one. */
PyObject *pyweft_buffer_make_part(const struct pyweft_buffer *buffer,
                                  const struct pyweft_part *part);

/* What Buffer.view and its like share: `in` is shape, dtype and offset, each NULL where it is not
 * given, over the `bytes` at `data`. A shape of None is all that is left, in one dimension. */
PyObject *pyweft_buffer_view(const char *call, struct pyweft_memory *memory, char *data,
                             size_t bytes, const struct pyweft_dtype_row *dtype,
                             PyObject *const *in);

/* What makes it an array (subscript.c). */
PyObject *pyweft_buffer_subscript(PyObject *self, PyObject *key);
PyObject *pyweft_buffer_item(PyObject *self, Py_ssize_t at);
int pyweft_buffer_assign(PyObject *self, PyObject *key, PyObject *value);
PyObject *pyweft_buffer_iterate(PyObject *self);
PyObject *pyweft_buffer_tolist(PyObject *self, PyObject *unused);
PyObject *pyweft_buffer_fill(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
                             PyObject *names);

/* The values as text, abbreviated where there are many; "" and no exception where they cannot be
 * read now. */
PyObject *pyweft_buffer_text(const struct pyweft_buffer *buffer);

/* What a Buffer gives to others (export.c). */
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
