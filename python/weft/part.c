/* SPDX-License-Identifier: BSD-3-Clause */
/* Parts of arrays by keys: address arithmetic only. */
#include "part.h"
#include <string.h>

struct pyweft_part pyweft_part_whole(char *data, size_t itemsize,
                                     const struct pyweft_shape *shape) {
    struct pyweft_part part = {
        .data = data, .ndim = shape->ndim, .nelems = shape->nelems, .itemsize = itemsize};
    int64_t stride = 1;
    for (int i = shape->ndim - 1; i >= 0; i--) {
        part.shape[i] = shape->dims[i];
        part.strides[i] = stride;
        stride *= shape->dims[i];
    }
    return part;
}

bool pyweft_part_contiguous(const struct pyweft_part *part) {
    int64_t next = 1;
    for (int i = part->ndim - 1; i >= 0; i--) {
        if (part->shape[i] != 1 && part->strides[i] != next)
            return part->nelems == 0;
        next *= part->shape[i];
    }
    return true;
}

static void find_extent(const struct pyweft_part *part, uintptr_t *begin, uintptr_t *end) {
    *begin = (uintptr_t)part->data;
    *end = *begin + part->itemsize;
    for (int i = 0; i < part->ndim; i++) {
        int64_t reach = (part->shape[i] - 1) * part->strides[i] * (int64_t)part->itemsize;
        if (reach < 0)
            *begin -= (uintptr_t)-reach;
        else
            *end += (uintptr_t)reach;
    }
}

bool pyweft_part_overlap(const struct pyweft_part *part, const struct pyweft_part *other) {
    uintptr_t begin, end, other_begin, other_end;
    if (part->nelems == 0 || other->nelems == 0)
        return false;
    find_extent(part, &begin, &end);
    find_extent(other, &other_begin, &other_end);
    return begin < other_end && other_begin < end;
}

PyObject *pyweft_part_shape(const struct pyweft_part *part) {
    PyObject *shape = PyTuple_New(part->ndim);
    for (int i = 0; shape && i < part->ndim; i++) {
        PyObject *dim = PyLong_FromLongLong(part->shape[i]);
        if (!dim || PyTuple_SetItem(shape, i, dim) < 0)
            Py_CLEAR(shape);
    }
    return shape;
}

/* --- Keys ------------------------------------------------------------------------------------ */

/* The state of applying a key: the dimensions of `of` up to `dim` have become those of `part`. */
struct walk {
    const struct pyweft_part *of;
    struct pyweft_part *part;
    int dim;
};

static bool add_dim(struct walk *walk, int64_t dim, int64_t stride) {
    struct pyweft_part *part = walk->part;
    if (part->ndim == PYWEFT_DIMS_MAX) {
        PyErr_Format(PyExc_IndexError, "Buffer: this key makes more than %d dimensions",
                     PYWEFT_DIMS_MAX);
        return false;
    }
    part->shape[part->ndim] = dim;
    part->strides[part->ndim++] = stride;
    part->nelems *= (size_t)dim;
    return true;
}

static bool keep_dims(struct walk *walk, int count) {
    for (; count > 0; count--, walk->dim++)
        if (!add_dim(walk, walk->of->shape[walk->dim], walk->of->strides[walk->dim]))
            return false;
    return true;
}

static void step(struct walk *walk, int64_t elements) {
    walk->part->data += elements * walk->of->strides[walk->dim] * (int64_t)walk->of->itemsize;
}

static bool take_number(struct walk *walk, Py_ssize_t at) {
    int64_t dim = walk->of->shape[walk->dim];
    if (at < -dim || at >= dim) {
        PyErr_Format(PyExc_IndexError, "Buffer: index %zd is out of range: dimension %d has %lld",
                     at, walk->dim, (long long)dim);
        return false;
    }
    step(walk, at < 0 ? at + dim : at);
    walk->dim++;
    return true;
}

/* An empty slice does not move the address, which could otherwise point past the memory. */
static bool take_slice(struct walk *walk, PyObject *slice) {
    Py_ssize_t start, stop, stride;
    if (PySlice_Unpack(slice, &start, &stop, &stride) < 0)
        return false;
    Py_ssize_t count =
        PySlice_AdjustIndices((Py_ssize_t)walk->of->shape[walk->dim], &start, &stop, stride);
    if (count > 0)
        step(walk, start);
    bool added = add_dim(walk, count, count > 1 ? walk->of->strides[walk->dim] * stride : 1);
    walk->dim++;
    return added;
}

static bool take_item(struct walk *walk, PyObject *item, int in_ellipsis) {
    if (item == Py_None)
        return add_dim(walk, 1, 1);
    if (item == Py_Ellipsis)
        return keep_dims(walk, in_ellipsis);
    if (PySlice_Check(item))
        return take_slice(walk, item);
    Py_ssize_t at = PyNumber_AsSsize_t(item, PyExc_IndexError);
    return (at != -1 || !PyErr_Occurred()) && take_number(walk, at);
}

static bool is_item(PyObject *item) {
    if (item == Py_None || item == Py_Ellipsis || PySlice_Check(item) || PyIndex_Check(item))
        return true;
    PyErr_Format(PyExc_TypeError,
                 "Buffer: %R is not an index: pass integers and slices; numpy() returns an array "
                 "that accepts lists and masks",
                 item);
    return false;
}

/* Counts the dimensions that the items index, and the Ellipses. */
static bool count_items(PyObject *const *items, Py_ssize_t count, int ndim, int *ellipses,
                        int *left) {
    int named = 0;
    *ellipses = 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        if (!is_item(items[i]))
            return false;
        *ellipses += items[i] == Py_Ellipsis;
        named += items[i] != Py_Ellipsis && items[i] != Py_None;
    }
    *left = ndim - named;
    if (*left < 0)
        PyErr_Format(PyExc_IndexError, "Buffer: %d indices for %d dimensions", named, ndim);
    else if (*ellipses > 1)
        PyErr_SetString(PyExc_IndexError, "Buffer: a key has one Ellipsis ('...') at most");
    return !PyErr_Occurred();
}

bool pyweft_part_find(const struct pyweft_part *of, PyObject *key, struct pyweft_part *part,
                      bool *one) {
    PyObject *items[2 * PYWEFT_DIMS_MAX];
    Py_ssize_t count = PyTuple_Check(key) ? PyTuple_Size(key) : 1;
    int ellipses, left;
    items[0] = key;
    if (count > 2 * PYWEFT_DIMS_MAX) {
        PyErr_Format(PyExc_IndexError, "Buffer: %zd indices for %d dimensions", count, of->ndim);
        return false;
    }
    for (Py_ssize_t i = 0; PyTuple_Check(key) && i < count; i++)
        items[i] = PyTuple_GetItem(key, i);
    if (!count_items(items, count, of->ndim, &ellipses, &left))
        return false;
    struct walk walk = {of, part, 0};
    part->data = of->data;
    part->itemsize = of->itemsize;
    part->ndim = 0;
    part->nelems = 1;
    for (Py_ssize_t i = 0; i < count; i++)
        if (!take_item(&walk, items[i], left))
            return false;
    *one = ellipses == 0 && part->ndim == 0 && left == 0;
    return keep_dims(&walk, of->ndim - walk.dim);
}

bool pyweft_part_entry(const struct pyweft_part *of, Py_ssize_t at, struct pyweft_part *part) {
    struct walk walk = {of, part, 0};
    part->data = of->data;
    part->itemsize = of->itemsize;
    part->ndim = 0;
    part->nelems = 1;
    return take_number(&walk, at) && keep_dims(&walk, of->ndim - 1);
}

/* --- Broadcasting ----------------------------------------------------------------------------- */

static bool refuse(const struct pyweft_part *part, const struct pyweft_part *to) {
    PyObject *has = pyweft_part_shape(part), *wants = pyweft_part_shape(to);
    if (has && wants)
        PyErr_Format(PyExc_ValueError,
                     "Buffer: elements of shape %R cannot be broadcast to shape %R", has, wants);
    Py_XDECREF(has);
    Py_XDECREF(wants);
    return false;
}

bool pyweft_part_stretch(struct pyweft_part *part, const struct pyweft_part *to) {
    struct pyweft_part found = {
        .data = part->data, .ndim = to->ndim, .nelems = to->nelems, .itemsize = part->itemsize};
    for (int i = 0; i < part->ndim - to->ndim; i++)
        if (part->shape[i] != 1 || to->ndim == 0)
            return refuse(part, to);
    for (int i = 0; i < to->ndim; i++) {
        int from = i + part->ndim - to->ndim;
        bool repeated = from < 0 || part->shape[from] == 1;
        if (!repeated && part->shape[from] != to->shape[i])
            return refuse(part, to);
        found.shape[i] = to->shape[i];
        found.strides[i] = repeated ? 0 : part->strides[from];
    }
    *part = found;
    return true;
}
