/* SPDX-License-Identifier: BSD-3-Clause */
/* Takes arrays of all libraries, and checks them. */
#include "array.h"
#include <string.h>
#include "array_source.h"
#include "buffer.h"
#include "gpu.h"
#include "session.h"

/* --- weft.Buffer ------------------------------------------------------------------------------ */

static bool take_buffer(struct pyweft_array *array, struct pyweft_buffer *buffer,
                        const struct pyweft_request *request) {
    struct pyweft_memory *memory = buffer->memory;
    if (!pyweft_memory_check(memory, request->call, request->name))
        return false;
    array->device = memory->gpu;
    array->data = buffer->part.data;
    array->dtype = buffer->dtype;
    array->readonly = memory->readonly;
    pyweft_array_set_shape(array, buffer->part.ndim, buffer->part.shape, buffer->part.strides);
    pyweft_memory_view(memory);
    array->held.memory = memory;
    array->holder = PYWEFT_HELD_BY_MEMORY;
    return true;
}

/* --- The buffer protocol --------------------------------------------------------------------- */

/* Returns false without an exception if the object does not offer its memory in this way. */
static bool take_protocol(struct pyweft_array *array, PyObject *object,
                          const struct pyweft_request *request) {
    Py_buffer *view = &array->held.protocol;
    int64_t shape[PYWEFT_DIMS_MAX] = {0}, strides[PYWEFT_DIMS_MAX] = {0};
    if (!PyObject_CheckBuffer(object))
        return false;
    if (PyObject_GetBuffer(object, view, PyBUF_RECORDS_RO) < 0) {
        PyErr_Clear();
        return false;
    }
    array->holder = PYWEFT_HELD_BY_PROTOCOL;
    array->dtype = pyweft_dtype_of_format(view->format, (size_t)view->itemsize);
    if (!array->dtype)
        return pyweft_array_refuse_type(request, "format", view->format);
    if (view->ndim > PYWEFT_DIMS_MAX) {
        PyErr_Format(PyExc_ValueError, "%s: argument %s has %d dimensions: at most %d are taken",
                     request->call, request->name, view->ndim, PYWEFT_DIMS_MAX);
        return false;
    }
    bool even = true; /* all strides are multiples of the element size */
    for (int i = 0; i < view->ndim; i++) {
        shape[i] = view->shape ? view->shape[i] : (int64_t)(view->len / view->itemsize);
        strides[i] = view->strides ? view->strides[i] / view->itemsize : 0;
        even &= !view->strides || view->strides[i] % view->itemsize == 0;
    }
    array->data = view->buf;
    array->device = -1;
    array->readonly = view->readonly;
    pyweft_array_set_shape(array, view->ndim, shape,
                           view->strides ? strides : NULL); /* ctypes has none */
    if (!even)
        array->contiguous = false, array->ld = 0, array->uneven = true;
    return true;
}

/* --- Any array -------------------------------------------------------------------------------- */

static bool find(struct pyweft_array *array, PyObject *object,
                 const struct pyweft_request *request) {
    struct pyweft_buffer *buffer = pyweft_buffer_of(object);
    memset(array, 0, offsetof(struct pyweft_array, held));
    if (buffer)
        return take_buffer(array, buffer, request);
    if (take_protocol(array, object, request))
        return true;
    if (!PyErr_Occurred() && pyweft_array_from_dlpack(array, object, request))
        return true;
    if (!PyErr_Occurred() && pyweft_array_from_cuda(array, object, request))
        return true;
    if (!PyErr_Occurred())
        PyErr_Format(PyExc_TypeError,
                     "%s: argument %s is %R: pass an array: a weft.Buffer, a numpy array, a torch "
                     "tensor, or another object with the buffer protocol or DLPack",
                     request->call, request->name, object);
    return false;
}

/* A stream works on the memory of this PE's GPU only. */
static bool check_device(const struct pyweft_array *array, const struct pyweft_request *request) {
    if (array->device < 0 || request->stream == WEFT_STREAM_HOST)
        return true;
    int mine = pyweft_gpu(request->call);
    if (mine >= 0 && mine != array->device)
        PyErr_Format(PyExc_ValueError,
                     "%s: argument %s is on GPU %d, but this PE's streams work on GPU %d",
                     request->call, request->name, array->device, mine);
    return mine == array->device;
}

/* torch has tensors with elements but without memory: those whose storage was resized to nothing,
 * and the stand-ins used while a program is traced. */
static bool check_memory(const struct pyweft_array *array, const struct pyweft_request *request) {
    if (array->data || array->bytes == 0)
        return true;
    PyErr_Format(
        PyExc_ValueError,
        "%s: argument %s has %zu elements of %s but no memory for them (its address is 0): pass "
        "an array that has its elements",
        request->call, request->name, array->nelems, array->dtype->name);
    return false;
}

static bool take(struct pyweft_array *array, PyObject *object,
                 const struct pyweft_request *request) {
    if (!find(array, object, request) || !check_memory(array, request) ||
        !check_device(array, request))
        return false;
    if (request->use == PYWEFT_ARRAY_WRITTEN && array->readonly)
        PyErr_Format(PyExc_ValueError, "%s: argument %s is read-only, but this call writes it",
                     request->call, request->name);
    return !PyErr_Occurred();
}

bool pyweft_array_take(struct pyweft_array *array, const char *call, const char *name,
                       PyObject *object, enum pyweft_array_use use, weft_stream stream) {
    const struct pyweft_request request = {call, name, use, stream};
    if (!take(array, object, &request))
        return false;
    if (array->contiguous)
        return true;
    PyErr_Format(
        PyExc_ValueError,
        "%s: argument %s is not contiguous: pass a contiguous copy, as numpy.ascontiguousarray "
        "or Tensor.contiguous() make",
        call, name);
    return false;
}

bool pyweft_array_take_typed(struct pyweft_array *array, const char *call, const char *name,
                             PyObject *object, enum pyweft_array_use use, weft_stream stream,
                             const char *dtype) {
    if (!pyweft_array_take(array, call, name, object, use, stream))
        return false;
    if (strcmp(array->dtype->name, dtype) == 0)
        return true;
    PyErr_Format(PyExc_ValueError, "%s: argument %s has elements of type %s: pass %s", call, name,
                 array->dtype->name, dtype);
    return false;
}

bool pyweft_array_take_strided(struct pyweft_array *array, const char *call, const char *name,
                               PyObject *object) {
    const struct pyweft_request request = {call, name, PYWEFT_ARRAY_READ, WEFT_STREAM_HOST};
    if (!take(array, object, &request))
        return false;
    if (array->uneven)
        PyErr_Format(
            PyExc_ValueError,
            "%s: argument %s has strides that are no multiple of the %s elements: pass a copy",
            call, name, array->dtype->name);
    else if (array->ndim > PYWEFT_DIMS_MAX)
        PyErr_Format(PyExc_ValueError, "%s: argument %s has %d dimensions: at most %d are taken",
                     call, name, array->ndim, PYWEFT_DIMS_MAX);
    return !PyErr_Occurred();
}

bool pyweft_array_is(PyObject *object) {
    return pyweft_buffer_of(object) || PyObject_CheckBuffer(object) ||
           PyObject_HasAttrString(object, "__dlpack__") ||
           PyObject_HasAttrString(object, "__cuda_array_interface__");
}

bool pyweft_array_take_matrix(struct pyweft_array *array, const char *call, const char *name,
                              PyObject *object, enum pyweft_array_use use, weft_stream stream) {
    const struct pyweft_request request = {call, name, use, stream};
    if (!take(array, object, &request))
        return false;
    if (array->ndim != 2)
        PyErr_Format(PyExc_ValueError, "%s: argument %s has %d dimensions: pass a matrix, with 2",
                     call, name, array->ndim);
    else if (array->ld == 0 || (array->transposed && use == PYWEFT_ARRAY_WRITTEN))
        PyErr_Format(
            PyExc_ValueError,
            "%s: argument %s does not have contiguous rows%s, one after the other: pass a copy, as "
            "numpy.ascontiguousarray or Tensor.contiguous() make",
            call, name, use == PYWEFT_ARRAY_WRITTEN ? "" : " or columns");
    return !PyErr_Occurred();
}

void pyweft_array_drop(struct pyweft_array *array) {
    PyObject *type, *value, *traceback;
    switch (array->holder) {
    case PYWEFT_HELD_BY_NONE:
        break;
    case PYWEFT_HELD_BY_MEMORY:
        pyweft_memory_unview(array->held.memory);
        break;
    case PYWEFT_HELD_BY_PROTOCOL:
        PyBuffer_Release(&array->held.protocol);
        break;
    case PYWEFT_HELD_BY_OBJECT: /* may run Python code of the producer */
        PyErr_Fetch(&type, &value, &traceback);
        Py_DECREF(array->held.object);
        PyErr_Restore(type, value, traceback);
        break;
    }
    array->holder = PYWEFT_HELD_BY_NONE;
}

/* --- Checks ---------------------------------------------------------------------------------- */

bool pyweft_array_check_dtype(const char *call, const char *name, const struct pyweft_array *array,
                              const char *other_name, const struct pyweft_array *other) {
    if (array->dtype == other->dtype)
        return true;
    PyErr_Format(PyExc_ValueError, "%s: argument %s is of %s, but %s is of %s: pass one type", call,
                 name, array->dtype->name, other_name, other->dtype->name);
    return false;
}

bool pyweft_array_check_nelems(const char *call, const char *name, const struct pyweft_array *array,
                               size_t expected, const char *because) {
    if (array->nelems == expected)
        return true;
    PyErr_Format(PyExc_ValueError, "%s: argument %s has %zu elements, expected %zu: %s", call, name,
                 array->nelems, expected, because);
    return false;
}

bool pyweft_array_check_symmetric(const char *call, const char *name,
                                  const struct pyweft_array *array, int pe) {
    const char *last = array->data + (array->bytes ? array->bytes - 1 : 0);
    if (array->bytes == 0 ||
        (shmem_addr_accessible(array->data, pe) && shmem_addr_accessible(last, pe)))
        return true;
    PyErr_Format(
        PyExc_ValueError,
        "%s: argument %s is not symmetric memory of this PE: pass a Buffer of weft.empty or "
        "weft.zeros, or an array over one; pass this PE's own array, which names the copy on "
        "every PE, not a view of a peer's",
        call, name);
    return false;
}
