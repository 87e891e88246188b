/* SPDX-License-Identifier: BSD-3-Clause */
/* Looking at arrays of all libraries alike. */
#include "array.h"
#include <string.h>
#include "buffer.h"
#include "dlpack.h"
#include "session.h"

struct question {
    const char *call, *name;
    weft_stream stream;
};

/* Shape and strides, in elements (NULL: as in C), become what the calls ask for. Dimensions of one
 * element may have any stride. */
static void set_shape(struct weft_array *array, int ndim, const int64_t *shape,
                      const int64_t *strides) {
    int64_t next = 1;
    array->ndim = ndim;
    array->nelems = 1;
    array->contiguous = true;
    for (int i = ndim - 1; i >= 0; i--) {
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
        array->ld = 1; /* no columns: any will do, but 0 says that there is none */
}

static bool fail_type(const struct question *question, const char *what, const char *detail) {
    PyErr_Format(PyExc_ValueError,
                 "%s: argument %s has elements of %s %s, which Weft has no type for",
                 question->call, question->name, what, detail);
    return false;
}

/* --- Our own --------------------------------------------------------------------------------- */

static bool take_buffer(struct weft_array *array, struct weft_buffer *buffer,
                        const struct question *question) {
    struct weft_memory *memory = buffer->memory;
    if (!weft_memory_check(memory, question->call, question->name))
        return false;
    array->device = -1;
    if (memory->space == SHMEMX_SPACE_DEVICE &&
        (array->device = weft_session_device(question->call)) < 0)
        return false;
    array->data = buffer->data;
    array->dtype = buffer->dtype;
    array->readonly = memory->readonly;
    set_shape(array, buffer->ndim, buffer->shape, NULL);
    weft_memory_view(memory);
    array->held.memory = memory;
    array->holder = WEFT_HELD_BY_MEMORY;
    return true;
}

/* --- The buffer protocol --------------------------------------------------------------------- */

/* False without an exception: the object shows itself in this way to nobody, or not this type. */
static bool take_protocol(struct weft_array *array, PyObject *object,
                          const struct question *question) {
    Py_buffer *view = &array->held.protocol;
    int64_t shape[WEFT_BUFFER_DIMS_MAX] = {0}, strides[WEFT_BUFFER_DIMS_MAX] = {0};
    if (!PyObject_CheckBuffer(object))
        return false;
    if (PyObject_GetBuffer(object, view, PyBUF_RECORDS_RO) < 0) {
        PyErr_Clear();
        return false;
    }
    array->holder = WEFT_HELD_BY_PROTOCOL;
    array->dtype = weft_dtype_of_format(view->format, (size_t)view->itemsize);
    if (!array->dtype)
        return fail_type(question, "format", view->format);
    if (view->ndim > WEFT_BUFFER_DIMS_MAX) {
        PyErr_Format(PyExc_ValueError, "%s: argument %s has %d dimensions: at most %d are taken",
                     question->call, question->name, view->ndim, WEFT_BUFFER_DIMS_MAX);
        return false;
    }
    bool even = true;
    for (int i = 0; i < view->ndim; i++) {
        shape[i] = view->shape[i];
        strides[i] = view->strides[i] / view->itemsize;
        even &= view->strides[i] % view->itemsize == 0;
    }
    array->data = view->buf;
    array->device = -1;
    array->readonly = view->readonly;
    set_shape(array, view->ndim, shape, strides);
    if (!even)
        array->contiguous = false, array->ld = 0;
    return true;
}

/* --- DLPack ---------------------------------------------------------------------------------- */

/* The producer's stream is to be done before ours goes on. A call of the host waits for no stream.
 */
static PyObject *stream_for_producer(weft_stream stream) {
    if (stream == WEFT_STREAM_HOST)
        return PyLong_FromLong(-1);
    return PyLong_FromLongLong(stream ? (long long)(intptr_t)stream : 1);
}

static PyObject *call_dlpack(PyObject *object, bool device, weft_stream stream, bool versioned) {
    PyObject *method = PyObject_GetAttrString(object, "__dlpack__");
    PyObject *none = PyTuple_New(0), *options = PyDict_New(), *capsule = NULL;
    PyObject *on = device ? stream_for_producer(stream) : NULL;
    PyObject *version = versioned ? Py_BuildValue("(ii)", 1, 1) : NULL;
    bool made = method && none && options && (on || !device) && (version || !versioned);
    if (made && on)
        made = PyDict_SetItemString(options, "stream", on) == 0;
    if (made && version)
        made = PyDict_SetItemString(options, "max_version", version) == 0;
    if (made)
        capsule = PyObject_Call(method, none, options);
    Py_XDECREF(method);
    Py_XDECREF(none);
    Py_XDECREF(options);
    Py_XDECREF(on);
    Py_XDECREF(version);
    return capsule;
}

/* Producers of before version 1 know no max_version. */
static PyObject *ask_dlpack(PyObject *object, bool device, weft_stream stream) {
    PyObject *capsule = call_dlpack(object, device, stream, true);
    if (capsule || !PyErr_ExceptionMatches(PyExc_TypeError))
        return capsule;
    PyErr_Clear();
    return call_dlpack(object, device, stream, false);
}

static bool read_tensor(struct weft_array *array, const struct dlpack_tensor *tensor,
                        const struct question *question) {
    char text[48];
    PyOS_snprintf(text, sizeof text, "%d of %d bits, %d lanes", tensor->dtype.code,
                  tensor->dtype.bits, tensor->dtype.lanes);
    array->dtype = tensor->dtype.lanes == 1
                       ? weft_dtype_of_dlpack(tensor->dtype.code, tensor->dtype.bits)
                       : NULL;
    if (!array->dtype)
        return fail_type(question, "DLPack's code", text);
    switch (tensor->device.type) {
    case DLPACK_CPU:
    case DLPACK_CUDA_HOST:
        array->device = -1;
        break;
    case DLPACK_CUDA:
    case DLPACK_CUDA_MANAGED:
        array->device = tensor->device.id;
        break;
    default:
        PyErr_Format(PyExc_ValueError,
                     "%s: argument %s lies on a device of DLPack's type %d: pass memory of the "
                     "host or of a CUDA GPU",
                     question->call, question->name, tensor->device.type);
        return false;
    }
    array->data = tensor->data ? (char *)tensor->data + tensor->byte_offset : NULL;
    set_shape(array, tensor->ndim, tensor->shape, tensor->strides);
    return true;
}

/* The capsule is not renamed: it is ours, and gives the tensor back when it goes. */
static bool take_dlpack(struct weft_array *array, PyObject *object,
                        const struct question *question) {
    PyObject *where = PyObject_CallMethod(object, "__dlpack_device__", NULL);
    int type = DLPACK_CPU, id;
    bool known = where && PyArg_ParseTuple(where, "ii", &type, &id);
    Py_XDECREF(where);
    bool device = type == DLPACK_CUDA || type == DLPACK_CUDA_MANAGED;
    PyObject *capsule = known ? ask_dlpack(object, device, question->stream) : NULL;
    if (!capsule)
        return false;
    array->held.capsule = capsule;
    array->holder = WEFT_HELD_BY_CAPSULE;
    if (!PyCapsule_IsValid(capsule, "dltensor_versioned")) {
        struct dlpack_managed *managed = PyCapsule_GetPointer(capsule, "dltensor");
        return managed && read_tensor(array, &managed->tensor, question);
    }
    struct dlpack_versioned *versioned = PyCapsule_GetPointer(capsule, "dltensor_versioned");
    if (versioned->version.major != 1) {
        PyErr_Format(PyExc_ValueError, "%s: argument %s: DLPack of version %d is not known",
                     question->call, question->name, (int)versioned->version.major);
        return false;
    }
    array->readonly = versioned->flags & DLPACK_READ_ONLY;
    return read_tensor(array, &versioned->tensor, question);
}

/* --- All ------------------------------------------------------------------------------------- */

static bool take(struct weft_array *array, PyObject *object, enum weft_array_use use,
                 const struct question *question) {
    struct weft_buffer *buffer = weft_buffer_of(object);
    memset(array, 0, offsetof(struct weft_array, held));
    if (buffer ? !take_buffer(array, buffer, question)
               : !take_protocol(array, object, question) && PyErr_Occurred())
        return false;
    if (array->holder == WEFT_HELD_BY_NONE && PyObject_HasAttrString(object, "__dlpack__") &&
        !take_dlpack(array, object, question))
        return false;
    if (array->holder == WEFT_HELD_BY_NONE) {
        PyErr_Format(PyExc_TypeError,
                     "%s: argument %s is %R: pass an array: a weft.Buffer, a numpy array, a torch "
                     "tensor, or another object with the buffer protocol or DLPack",
                     question->call, question->name, object);
        return false;
    }
    if (use == WEFT_ARRAY_WRITTEN && array->readonly) {
        PyErr_Format(PyExc_ValueError, "%s: argument %s is read-only, and written by this call",
                     question->call, question->name);
        return false;
    }
    return true;
}

bool weft_array_take(struct weft_array *array, const char *call, const char *name, PyObject *object,
                     enum weft_array_use use, weft_stream stream) {
    const struct question question = {call, name, stream};
    if (!take(array, object, use, &question))
        return false;
    if (array->contiguous)
        return true;
    PyErr_Format(PyExc_ValueError,
                 "%s: argument %s is not contiguous: pass a copy with its elements one behind the "
                 "other, such as numpy.ascontiguousarray or Tensor.contiguous() make",
                 call, name);
    return false;
}

bool weft_array_take_matrix(struct weft_array *array, const char *call, const char *name,
                            PyObject *object, enum weft_array_use use, weft_stream stream) {
    const struct question question = {call, name, stream};
    if (!take(array, object, use, &question))
        return false;
    if (array->ndim != 2)
        PyErr_Format(PyExc_ValueError, "%s: argument %s has %d dimensions: pass a matrix, with 2",
                     call, name, array->ndim);
    else if (array->ld == 0)
        PyErr_Format(
            PyExc_ValueError,
            "%s: argument %s does not have its rows contiguous, one behind the other: pass "
            "a copy, such as numpy.ascontiguousarray or Tensor.contiguous() make",
            call, name);
    return array->ndim == 2 && array->ld != 0;
}

void weft_array_drop(struct weft_array *array) {
    PyObject *type, *value, *traceback;
    switch (array->holder) {
    case WEFT_HELD_BY_NONE:
        break;
    case WEFT_HELD_BY_MEMORY:
        weft_memory_unview(array->held.memory);
        break;
    case WEFT_HELD_BY_PROTOCOL:
        PyBuffer_Release(&array->held.protocol);
        break;
    case WEFT_HELD_BY_CAPSULE: /* may run code of the producer's */
        PyErr_Fetch(&type, &value, &traceback);
        Py_DECREF(array->held.capsule);
        PyErr_Restore(type, value, traceback);
        break;
    }
    array->holder = WEFT_HELD_BY_NONE;
}

/* --- Checks ---------------------------------------------------------------------------------- */

bool weft_array_check_dtype(const char *call, const char *name, const struct weft_array *array,
                            const char *other_name, const struct weft_array *other) {
    if (array->dtype == other->dtype)
        return true;
    PyErr_Format(PyExc_ValueError, "%s: argument %s is of %s, and %s of %s: pass one type", call,
                 name, array->dtype->name, other_name, other->dtype->name);
    return false;
}

bool weft_array_check_nelems(const char *call, const char *name, const struct weft_array *array,
                             size_t expected, const char *because) {
    if (array->nelems == expected)
        return true;
    PyErr_Format(PyExc_ValueError, "%s: argument %s has %zu elements, expected are %zu: %s", call,
                 name, array->nelems, expected, because);
    return false;
}

bool weft_array_check_symmetric(const char *call, const char *name, const struct weft_array *array,
                                int pe) {
    const char *last = array->data + (array->bytes ? array->bytes - 1 : 0);
    if (array->bytes == 0 ||
        (shmem_addr_accessible(array->data, pe) && shmem_addr_accessible(last, pe)))
        return true;
    PyErr_Format(
        PyExc_ValueError,
        "%s: argument %s is not symmetric memory of this PE: pass a Buffer of weft.empty "
        "or weft.zeros, or an array over one; a PE's own address names the object on every "
        "PE, a peer's view does not",
        call, name);
    return false;
}
