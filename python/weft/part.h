/* SPDX-License-Identifier: BSD-3-Clause */
/* A part of an array: where its first element lies, and how far apart the elements are in each
 * dimension. A key such as b[2, ::-1] makes a part of a part, and nothing is copied. */
#ifndef PYWEFT_PART_H
#define PYWEFT_PART_H

#include "module.h"

#define PYWEFT_DIMS_MAX 16

struct pyweft_shape {
    int ndim;
    size_t nelems;
    int64_t dims[PYWEFT_DIMS_MAX];
};

struct pyweft_part {
    char *data;
    int ndim;
    size_t nelems, itemsize;
    int64_t shape[PYWEFT_DIMS_MAX];
    int64_t strides[PYWEFT_DIMS_MAX]; /* in elements */
};

/* All of `shape`, laid out as in C from `data` on. */
struct pyweft_part pyweft_part_whole(char *data, size_t itemsize, const struct pyweft_shape *shape);

/* Its elements lie one behind the other, as in C. */
bool pyweft_part_contiguous(const struct pyweft_part *part);

/* Whether some byte may be in both: one lies from the first element to the last of either, whatever
 * the order of their addresses is. */
bool pyweft_part_overlap(const struct pyweft_part *part, const struct pyweft_part *other);

/* The element or elements that `key` names: whole numbers, slices, an Ellipsis and None, or several
 * of them in a tuple. *one says that it is a single element by whole numbers alone. IndexError,
 * TypeError for what is no key. */
bool pyweft_part_find(const struct pyweft_part *of, PyObject *key, struct pyweft_part *part,
                      bool *one);

/* The entry of the first dimension: b[at]. IndexError. */
bool pyweft_part_entry(const struct pyweft_part *of, Py_ssize_t at, struct pyweft_part *part);

/* `part` stretched to the dimensions of `to`, as numpy does: dimensions that are missing in front,
 * and those of one element, are repeated, with strides of 0, and those of one element that are too
 * many in front are left out, but for a single element. ValueError. */
bool pyweft_part_stretch(struct pyweft_part *part, const struct pyweft_part *to);

/* A new tuple. */
PyObject *pyweft_part_shape(const struct pyweft_part *part);

#endif
