/* SPDX-License-Identifier: BSD-3-Clause */
/* A part of an array: where its first element lies, and how far apart the elements are in each
 * dimension. A key such as b[2, ::-1] makes a part of a part, and nothing is copied. */
#ifndef WEFT_PYTHON_PART_H
#define WEFT_PYTHON_PART_H

#include "module.h"

#define WEFT_DIMS_MAX 16

struct weft_shape {
    int ndim;
    size_t nelems;
    int64_t dims[WEFT_DIMS_MAX];
};

struct weft_part {
    char *data;
    int ndim;
    size_t nelems, itemsize;
    int64_t shape[WEFT_DIMS_MAX];
    int64_t strides[WEFT_DIMS_MAX]; /* in elements */
};

/* All of `shape`, laid out as in C from `data` on. */
struct weft_part weft_part_whole(char *data, size_t itemsize, const struct weft_shape *shape);

/* Its elements lie one behind the other, as in C. */
bool weft_part_contiguous(const struct weft_part *part);

/* Whether some byte may be in both: one lies from the first element to the last of either, whatever
 * the order of their addresses is. */
bool weft_part_overlap(const struct weft_part *part, const struct weft_part *other);

/* The element or elements that `key` names: whole numbers, slices, an Ellipsis and None, or several
 * of them in a tuple. *one says that it is a single element by whole numbers alone. IndexError,
 * TypeError for what is no key. */
bool weft_part_find(const struct weft_part *of, PyObject *key, struct weft_part *part, bool *one);

/* The entry of the first dimension: b[at]. IndexError. */
bool weft_part_entry(const struct weft_part *of, Py_ssize_t at, struct weft_part *part);

/* `part` stretched to the dimensions of `to`, as numpy does: dimensions that are missing in front,
 * and those of one element, are repeated, with strides of 0, and those of one element that are too
 * many in front are left out, but for a single element. ValueError. */
bool weft_part_stretch(struct weft_part *part, const struct weft_part *to);

/* A new tuple. */
PyObject *weft_part_shape(const struct weft_part *part);

#endif
