/* SPDX-License-Identifier: BSD-3-Clause */
/* Takes numbers, arrays and sequences. Everything is converted before anything is written, so a
 * wrong value changes nothing. */
#include "value.h"
#include <stdlib.h>
#include <string.h>
#include "buffer.h"
#include "copy.h"

static void begin(struct pyweft_value *value) {
    value->gpu = false;
    value->owned = NULL;
    value->array.holder = PYWEFT_HELD_BY_NONE;
}

static bool allocate(struct pyweft_value *value, size_t itemsize,
                     const struct pyweft_shape *shape) {
    size_t bytes;
    bool fits = !__builtin_mul_overflow(shape->nelems, itemsize, &bytes);
    value->owned = fits ? malloc(bytes ? bytes : 1) : NULL;
    if (!value->owned) {
        PyErr_NoMemory();
        return false;
    }
    value->part = pyweft_part_whole(value->owned, itemsize, shape);
    return true;
}

/* Checks that the part can be broadcast. */
static bool check_shape(struct pyweft_part part, const struct pyweft_part *to) {
    return pyweft_part_stretch(&part, to);
}

/* If the shape has no more elements than `to`, errors in the elements are reported before errors in
 * the shape. */
static bool check_size(const struct pyweft_part *part, const struct pyweft_part *to) {
    return !to || part->nelems <= to->nelems || check_shape(*part, to);
}

/* --- Arrays ---------------------------------------------------------------------------------- */

static struct pyweft_part part_of(const struct pyweft_array *array) {
    struct pyweft_part part = {.data = array->data,
                               .ndim = array->ndim,
                               .nelems = array->nelems,
                               .itemsize = array->dtype->bytes};
    memcpy(part.shape, array->shape, (size_t)array->ndim * sizeof *part.shape);
    memcpy(part.strides, array->strides, (size_t)array->ndim * sizeof *part.strides);
    return part;
}

static struct pyweft_shape shape_of(const struct pyweft_part *part) {
    struct pyweft_shape shape = {.ndim = part->ndim, .nelems = part->nelems};
    memcpy(shape.dims, part->shape, (size_t)part->ndim * sizeof *shape.dims);
    return shape;
}

/* Converts the elements from dimension `dim` on, and appends them at *to. */
static bool convert(const struct pyweft_dtype_row *dtype, char **to,
                    const struct pyweft_dtype_row *from_dtype, const struct pyweft_part *from,
                    int dim, const char *at) {
    if (dim == from->ndim) {
        bool right = pyweft_element_convert(dtype, *to, from_dtype, at);
        *to += dtype->bytes;
        return right;
    }
    bool right = true;
    for (int64_t i = 0; right && i < from->shape[dim]; i++) {
        right = convert(dtype, to, from_dtype, from, dim + 1, at);
        at += from->strides[dim] * (int64_t)from->itemsize;
    }
    return right;
}

static bool convert_all(struct pyweft_value *value, const struct pyweft_dtype_row *dtype,
                        const struct pyweft_dtype_row *from_dtype, const struct pyweft_part *from) {
    const struct pyweft_shape shape = shape_of(from);
    if (!pyweft_element_check_kinds(dtype, from_dtype) || !allocate(value, dtype->bytes, &shape))
        return false;
    char *to = value->owned;
    return convert(dtype, &to, from_dtype, from, 0, from->data);
}

static bool fetch(struct pyweft_value *value, const struct pyweft_buffer *buffer) {
    const struct pyweft_shape shape = shape_of(&buffer->part);
    return allocate(value, buffer->dtype->bytes, &shape) &&
           pyweft_copy(buffer, &buffer->part, &value->part, PYWEFT_FROM_BUFFER);
}

bool pyweft_value_fetch(struct pyweft_value *value, const struct pyweft_buffer *buffer) {
    begin(value);
    return fetch(value, buffer);
}

/* Takes a Buffer in GPU memory, whose elements are copied to the host first. */
static bool take_buffer(struct pyweft_value *value, const struct pyweft_dtype_row *dtype,
                        const struct pyweft_buffer *buffer) {
    if (!pyweft_element_check_kinds(dtype, buffer->dtype) || !fetch(value, buffer))
        return false;
    if (buffer->dtype == dtype)
        return true;
    char *fetched = value->owned;
    const struct pyweft_part from = value->part;
    bool right = convert_all(value, dtype, buffer->dtype, &from);
    free(fetched);
    return right;
}

/* Single elements of another library's array on a GPU cannot be read here. */
bool pyweft_value_bring(struct pyweft_value *value, const struct pyweft_dtype_row *dtype,
                        PyObject *object) {
    const struct pyweft_buffer *buffer = pyweft_buffer_of(object);
    value->gpu = false;
    if (buffer)
        return take_buffer(value, dtype, buffer);
    PyErr_SetString(PyExc_ValueError,
                    "Buffer: an array on a GPU that is not a Buffer can only be assigned to "
                    "contiguous elements of symmetric memory, of the same shape, that it does not "
                    "overlap");
    return false;
}

static bool take_gpu(struct pyweft_value *value, const struct pyweft_dtype_row *dtype,
                     PyObject *object) {
    const struct pyweft_array *array = &value->array;
    struct pyweft_buffer *buffer = pyweft_buffer_of(object);
    value->gpu = array->dtype == dtype && array->contiguous;
    value->part = part_of(array);
    if (value->gpu)
        return true;
    if (buffer)
        return take_buffer(value, dtype, buffer);
    PyErr_Format(PyExc_ValueError,
                 "Buffer: an array of %s on GPU %d cannot be assigned to elements of %s: pass it "
                 "contiguous and of this type",
                 array->dtype->name, array->device, dtype->name);
    return false;
}

/* If no conversion is needed and the elements are contiguous, the array itself is the source. */
static bool take_array(struct pyweft_value *value, const struct pyweft_dtype_row *dtype,
                       const struct pyweft_part *to, PyObject *object) {
    if (!pyweft_array_take_strided(&value->array, "Buffer", "value", object))
        return false;
    if (value->array.device >= 0)
        return take_gpu(value, dtype, object);
    const struct pyweft_part from = part_of(&value->array);
    if (!check_size(&from, to))
        return false;
    if (value->array.dtype != dtype || !value->array.contiguous)
        return convert_all(value, dtype, value->array.dtype, &from);
    value->part = from;
    return true;
}

/* --- Sequences ------------------------------------------------------------------------------- */

static bool is_sequence(PyObject *object) {
    return PySequence_Check(object) && !PyUnicode_Check(object);
}

static bool add_dim(struct pyweft_shape *shape, int64_t dim) {
    if (shape->ndim == PYWEFT_DIMS_MAX) {
        PyErr_Format(PyExc_ValueError, "Buffer: a sequence is nested more than %d times deep",
                     PYWEFT_DIMS_MAX);
        return false;
    }
    shape->dims[shape->ndim++] = dim;
    if (!__builtin_mul_overflow(shape->nelems, (size_t)dim, &shape->nelems))
        return true;
    PyErr_SetString(PyExc_ValueError, "Buffer: a sequence has more elements than memory can have");
    return false;
}

static bool add_dims_of_array(struct pyweft_shape *shape, PyObject *object) {
    struct pyweft_array array = {0};
    bool right = pyweft_array_take_strided(&array, "Buffer", "value", object);
    for (int i = 0; right && i < array.ndim; i++)
        right = add_dim(shape, array.shape[i]);
    pyweft_array_drop(&array);
    return right;
}

/* Finds the shape of a sequence; its first entries decide the depth. */
static bool find_shape(struct pyweft_shape *shape, PyObject *object) {
    if (pyweft_array_is(object))
        return add_dims_of_array(shape, object);
    if (!is_sequence(object))
        return true;
    Py_ssize_t count = PySequence_Size(object);
    if (count < 0 || !add_dim(shape, count))
        return false;
    if (count == 0)
        return true;
    PyObject *first = PySequence_GetItem(object, 0);
    bool right = first && find_shape(shape, first);
    Py_XDECREF(first);
    return right;
}

static bool refuse_ragged(void) {
    PyErr_SetString(PyExc_ValueError, "Buffer: the entries of a sequence have different lengths");
    return false;
}

struct filling {
    const struct pyweft_dtype_row *dtype;
    const struct pyweft_shape *shape;
    char *to;
};

static bool fill_from_array(struct filling *filling, PyObject *object, int dim) {
    struct pyweft_value value = {.owned = NULL};
    bool right = pyweft_value_take(&value, filling->dtype, NULL, object);
    if (right && value.gpu) {
        PyErr_SetString(PyExc_ValueError, "Buffer: a sequence contains an array of a GPU");
        right = false;
    }
    if (right && (value.part.ndim != filling->shape->ndim - dim ||
                  memcmp(value.part.shape, filling->shape->dims + dim,
                         (size_t)value.part.ndim * sizeof *value.part.shape) != 0))
        right = refuse_ragged();
    if (right) { /* contiguous, because pyweft_value_take makes it so */
        memcpy(filling->to, value.part.data, value.part.nelems * filling->dtype->bytes);
        filling->to += value.part.nelems * filling->dtype->bytes;
    }
    pyweft_value_drop(&value);
    return right;
}

static bool fill(struct filling *filling, PyObject *object, int dim) {
    if (dim < filling->shape->ndim && pyweft_array_is(object))
        return fill_from_array(filling, object, dim);
    if (dim == filling->shape->ndim) {
        if (is_sequence(object) && !pyweft_array_is(object))
            return refuse_ragged();
        bool right = pyweft_element_make("Buffer", filling->dtype, object, filling->to);
        filling->to += filling->dtype->bytes;
        return right;
    }
    if (!is_sequence(object) || PySequence_Size(object) != filling->shape->dims[dim])
        return PyErr_Occurred() ? false : refuse_ragged();
    bool right = true;
    for (Py_ssize_t i = 0; right && i < (Py_ssize_t)filling->shape->dims[dim]; i++) {
        PyObject *entry = PySequence_GetItem(object, i);
        right = entry && fill(filling, entry, dim + 1);
        Py_XDECREF(entry);
    }
    return right;
}

static bool take_sequence(struct pyweft_value *value, const struct pyweft_dtype_row *dtype,
                          const struct pyweft_part *to, PyObject *object) {
    struct pyweft_shape shape = {.nelems = 1};
    if (!find_shape(&shape, object))
        return false;
    const struct pyweft_part whole = pyweft_part_whole(NULL, dtype->bytes, &shape);
    if (!check_size(&whole, to) || !allocate(value, dtype->bytes, &shape))
        return false;
    struct filling filling = {dtype, &shape, value->owned};
    return fill(&filling, object, 0);
}

/* --- All kinds of values ---------------------------------------------------------------------- */

static bool is_plain_number(PyObject *object) {
    return PyFloat_CheckExact(object) || PyLong_CheckExact(object) || PyBool_Check(object);
}

bool pyweft_value_take(struct pyweft_value *value, const struct pyweft_dtype_row *dtype,
                       const struct pyweft_part *to, PyObject *object) {
    begin(value);
    if (!is_plain_number(object)) {
        if (pyweft_array_is(object))
            return take_array(value, dtype, to, object);
        if (is_sequence(object))
            return take_sequence(value, dtype, to, object);
    }
    value->part = (struct pyweft_part){
        .data = value->element, .ndim = 0, .nelems = 1, .itemsize = dtype->bytes};
    return pyweft_element_make("Buffer", dtype, object, value->element);
}

/* Returns whether a write could overwrite elements before they are read. Contiguous onto contiguous
 * is safe, because memmove copies it. */
static bool is_endangered(const struct pyweft_part *from, const struct pyweft_part *to,
                          bool alias) {
    if (to->nelems == 0 || (from->nelems == to->nelems && pyweft_part_contiguous(to)))
        return false;
    return alias || pyweft_part_overlap(from, to);
}

bool pyweft_value_stretch(struct pyweft_value *value, const struct pyweft_part *to, bool alias) {
    const struct pyweft_part from = value->part;
    bool lent = value->array.holder != PYWEFT_HELD_BY_NONE && !value->owned;
    if (!check_shape(from, to))
        return false;
    if (lent && is_endangered(&from, to, alias)) {
        const struct pyweft_shape shape = shape_of(&from);
        if (!allocate(value, from.itemsize, &shape))
            return false;
        memcpy(value->owned, from.data, from.nelems * from.itemsize);
    }
    return pyweft_part_stretch(&value->part, to);
}

void pyweft_value_drop(struct pyweft_value *value) {
    pyweft_array_drop(&value->array);
    free(value->owned);
}
