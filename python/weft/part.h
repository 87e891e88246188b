/* SPDX-License-Identifier: BSD-3-Clause */
/* A part of an array: the address of its first element, and its shape and strides. A key such as
 * b[2, ::-1] makes a part of a part without copying. */
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

/* Returns all of `shape` in C order, beginning at `data`. */
struct pyweft_part pyweft_part_whole(char *data, size_t itemsize, const struct pyweft_shape *shape);

/* Returns whether the elements are contiguous in C order. */
bool pyweft_part_contiguous(const struct pyweft_part *part);

/* Returns whether the two ranges of bytes, from each part's lowest element to its highest,
 * overlap. */
bool pyweft_part_overlap(const struct pyweft_part *part, const struct pyweft_part *other);

/* Applies a key: an integer, a slice, an Ellipsis, None, or a tuple of them. Sets *one if the key
 * selects a single element by integers alone. Returns false with IndexError, with TypeError for an
 * object that is not a key, or with ValueError for a slice with step 0. */
bool pyweft_part_find(const struct pyweft_part *of, PyObject *key, struct pyweft_part *part,
                      bool *one);

/* Selects entry `at` of the first dimension, b[at]. Returns false with IndexError. */
bool pyweft_part_entry(const struct pyweft_part *of, Py_ssize_t at, struct pyweft_part *part);

/* Broadcasts `part` to the shape of `to`, by numpy's rules: missing leading dimensions and
 * dimensions of one element are repeated, with strides of 0. Surplus leading dimensions of one
 * element are dropped, except for a single element. Returns false with ValueError. */
bool pyweft_part_stretch(struct pyweft_part *part, const struct pyweft_part *to);

/* Returns the shape as a new tuple. */
PyObject *pyweft_part_shape(const struct pyweft_part *part);

#endif
