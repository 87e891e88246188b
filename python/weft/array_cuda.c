/* SPDX-License-Identifier: BSD-3-Clause */
/* Arrays through __cuda_array_interface__ (cupy, numba), a dictionary. It does not name the GPU, so
 * this PE's GPU is assumed. If it names a stream, the caller must wait for that stream. */
#include "array_source.h"
#include "buffer.h"
#include "gpu.h"
#include "session.h"

/* Returns an entry, a borrowed reference, or NULL with ValueError if it is missing. */
static PyObject *item(const struct pyweft_request *request, PyObject *interface, const char *key) {
    PyObject *found = PyDict_GetItemString(interface, key);
    if (!found)
        PyErr_Format(PyExc_ValueError, "%s: argument %s: its __cuda_array_interface__ has no %s",
                     request->call, request->name, key);
    return found;
}

static bool read_data(struct pyweft_array *array, PyObject *pair) {
    PyObject *address = PySequence_GetItem(pair, 0), *readonly = PySequence_GetItem(pair, 1);
    if (address && readonly) {
        array->data = PyLong_AsVoidPtr(address);
        array->readonly = PyObject_IsTrue(readonly);
    }
    Py_XDECREF(address);
    Py_XDECREF(readonly);
    return !PyErr_Occurred();
}

static bool read_type(struct pyweft_array *array, PyObject *typestr,
                      const struct pyweft_request *request) {
    const char *text = PyUnicode_AsUTF8AndSize(typestr, NULL);
    array->dtype = text ? pyweft_dtype_of_typestr(text) : NULL;
    return array->dtype || (text && pyweft_array_refuse_type(request, "typestr", text));
}

/* Reads the numbers of a tuple, divided by `unit`. Sets *even to false if a number is not a
 * multiple of `unit`. */
static bool read_numbers(PyObject *tuple, int64_t unit, int ndim, int64_t *numbers, bool *even) {
    for (int i = 0; i < ndim; i++) {
        PyObject *number = PySequence_GetItem(tuple, i);
        int64_t value = number ? PyLong_AsLongLong(number) : -1;
        numbers[i] = value / unit;
        *even &= value % unit == 0;
        Py_XDECREF(number);
    }
    return !PyErr_Occurred();
}

/* A mask marks elements as invalid, which Weft cannot express. */
static bool check_mask(PyObject *interface, const struct pyweft_request *request) {
    PyObject *mask = PyDict_GetItemString(interface, "mask"); /* borrowed */
    if (!mask || mask == Py_None)
        return true;
    PyErr_Format(PyExc_ValueError, "%s: argument %s has a mask: pass an array without one",
                 request->call, request->name);
    return false;
}

static bool read_shape(struct pyweft_array *array, PyObject *interface,
                       const struct pyweft_request *request) {
    int64_t shape[PYWEFT_DIMS_MAX] = {0}, strides[PYWEFT_DIMS_MAX] = {0};
    PyObject *dims = item(request, interface, "shape");
    PyObject *steps = PyDict_GetItemString(interface, "strides");
    bool even = true;
    Py_ssize_t ndim = dims ? PySequence_Size(dims) : -1;
    if (ndim > PYWEFT_DIMS_MAX)
        PyErr_Format(PyExc_ValueError, "%s: argument %s has %zd dimensions: at most %d are taken",
                     request->call, request->name, ndim, PYWEFT_DIMS_MAX);
    if (ndim < 0 || PyErr_Occurred() || !read_numbers(dims, 1, (int)ndim, shape, &even))
        return false;
    bool strided = steps && steps != Py_None;
    if (strided && !read_numbers(steps, (int64_t)array->dtype->bytes, (int)ndim, strides, &even))
        return false;
    pyweft_array_set_shape(array, (int)ndim, shape, strided ? strides : NULL);
    if (!even)
        array->contiguous = false, array->ld = 0, array->uneven = true;
    return true;
}

bool pyweft_array_from_cuda(struct pyweft_array *array, PyObject *object,
                            const struct pyweft_request *request) {
    PyObject *interface = PyObject_GetAttrString(object, "__cuda_array_interface__");
    if (!interface || !PyDict_Check(interface)) {
        Py_XDECREF(interface);
        PyErr_Clear();
        return false;
    }
    PyObject *typestr = item(request, interface, "typestr");
    PyObject *data = typestr ? item(request, interface, "data") : NULL;
    bool right = data && read_type(array, typestr, request) && read_data(array, data) &&
                 check_mask(interface, request) && read_shape(array, interface, request) &&
                 (array->device = pyweft_gpu(request->call)) >= 0;
    Py_DECREF(interface);
    if (!right)
        return false;
    array->held.object = Py_NewRef(object);
    array->holder = PYWEFT_HELD_BY_OBJECT;
    return true;
}
