/* SPDX-License-Identifier: BSD-3-Clause */
/* Buffers as objects: making them and their views. Their methods are in buffer_type.c. */
#include "buffer.h"
#include <stdlib.h>
#include "argument.h"
#include "session.h"

PyTypeObject *pyweft_buffer_type;

struct pyweft_buffer *pyweft_buffer_of(PyObject *object) {
    return Py_IS_TYPE(object, pyweft_buffer_type) ? (struct pyweft_buffer *)object : NULL;
}

/* --- Shapes ---------------------------------------------------------------------------------- */

static bool add_dim(const char *call, PyObject *object, struct pyweft_shape *shape) {
    size_t dim = 0;
    if (!object || !pyweft_argument_size(call, "shape", object, &dim))
        return false;
    if (shape->ndim == PYWEFT_DIMS_MAX)
        PyErr_Format(PyExc_ValueError, "%s: argument shape has more than %d dimensions", call,
                     PYWEFT_DIMS_MAX);
    else if (__builtin_mul_overflow(shape->nelems, dim, &shape->nelems) ||
             shape->nelems > (size_t)PTRDIFF_MAX / 16)
        PyErr_Format(PyExc_ValueError, "%s: argument shape has more elements than memory can hold",
                     call);
    if (PyErr_Occurred())
        return false;
    shape->dims[shape->ndim++] = (int64_t)dim;
    return true;
}

bool pyweft_shape_read(const char *call, PyObject *object, struct pyweft_shape *shape) {
    shape->ndim = 0;
    shape->nelems = 1;
    if (PyIndex_Check(object))
        return add_dim(call, object, shape);
    Py_ssize_t count = PySequence_Check(object) ? PySequence_Size(object) : -1;
    if (count < 0) {
        PyErr_Clear();
        PyErr_Format(PyExc_TypeError,
                     "%s: argument shape is %R: pass a number or a sequence of numbers", call,
                     object);
        return false;
    }
    bool right = true;
    for (Py_ssize_t i = 0; right && i < count; i++) {
        PyObject *dim = PySequence_GetItem(object, i);
        right = add_dim(call, dim, shape);
        Py_XDECREF(dim);
    }
    return right;
}

static struct pyweft_buffer *make(struct pyweft_memory *memory,
                                  const struct pyweft_dtype_row *dtype) {
    struct pyweft_buffer *buffer = PyObject_New(struct pyweft_buffer, pyweft_buffer_type);
    if (!buffer)
        return NULL;
    buffer->weak = NULL;
    buffer->memory = memory;
    buffer->dtype = dtype;
    buffer->pe = pyweft_session.pe;
    buffer->shift = 0;
    pyweft_memory_hold(memory);
    return buffer;
}

PyObject *pyweft_buffer_make(struct pyweft_memory *memory, char *data,
                             const struct pyweft_dtype_row *dtype,
                             const struct pyweft_shape *shape) {
    struct pyweft_buffer *buffer = make(memory, dtype);
    if (buffer)
        buffer->part = pyweft_part_whole(data, dtype->bytes, shape);
    return (PyObject *)buffer;
}

PyObject *pyweft_buffer_make_part(const struct pyweft_buffer *of, const struct pyweft_part *part) {
    struct pyweft_buffer *buffer = make(of->memory, of->dtype);
    if (buffer) {
        buffer->part = *part;
        buffer->pe = of->pe;
        buffer->shift = of->shift;
    }
    return (PyObject *)buffer;
}

/* --- Views ------------------------------------------------------------------------------------ */

static bool read_view(const char *call, size_t bytes, PyObject *const *in,
                      struct pyweft_shape *shape, const struct pyweft_dtype_row **dtype,
                      size_t *offset) {
    *offset = 0;
    if ((in[1] && !(*dtype = pyweft_dtype_find(call, in[1]))) ||
        !pyweft_argument_size(call, "offset", in[2], offset))
        return false;
    if (in[0] && in[0] != Py_None)
        return pyweft_shape_read(call, in[0], shape);
    shape->ndim = 1;
    shape->nelems = *offset <= bytes ? (bytes - *offset) / (*dtype)->bytes : 0;
    shape->dims[0] = (int64_t)shape->nelems;
    return true;
}

PyObject *pyweft_buffer_view(const char *call, struct pyweft_memory *memory, char *data,
                             size_t bytes, const struct pyweft_dtype_row *dtype,
                             PyObject *const *in) {
    struct pyweft_shape shape;
    size_t offset;
    if (!read_view(call, bytes, in, &shape, &dtype, &offset))
        return NULL;
    size_t wanted = shape.nelems * dtype->bytes;
    if (offset > bytes || wanted > bytes - offset)
        return PyErr_Format(PyExc_ValueError,
                            "%s: asks for %zu bytes from byte %zu on, but there are %zu in all",
                            call, wanted, offset, bytes);
    if ((uintptr_t)(data + offset) % dtype->bytes != 0)
        return PyErr_Format(
            PyExc_ValueError,
            "%s: argument offset is %zu, but must be a multiple of the %zu bytes of %s", call,
            offset, dtype->bytes, dtype->name);
    return pyweft_buffer_make(memory, data + offset, dtype, &shape);
}
