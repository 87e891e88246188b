/* SPDX-License-Identifier: BSD-3-Clause */
/* Element kernels of the tensor collectives: conversion of 16-bit types and the reduction of many
 * sources into one. One pass over all sources, a block at a time, so that everything between them
 * stays in the first-level cache; sources are taken in the order given, so results have the same
 * bits on every PE and in every run. */
#ifndef WEFT_COLL_ELEMENTS_H
#define WEFT_COLL_ELEMENTS_H

#include <stddef.h>
#include <stdint.h>
#include <weft.h>

/* Bytes of one element; 0 for an unknown type. */
size_t weft_element_bytes(weft_dtype dtype);

/* Where element (row, col) of a matrix lies. */
static inline void *weft_matrix_at(const weft_matrix *m, size_t row, size_t col) {
    return (char *)m->data + (row * m->ld + col) * weft_element_bytes(m->dtype);
}

/* The rows [first, first + rows) of a matrix. */
static inline weft_matrix weft_matrix_rows(const weft_matrix *m, size_t first, size_t rows) {
    weft_matrix part = {m->data, rows, m->cols, m->ld, m->dtype};
    if (rows > 0 && m->data)
        part.data = weft_matrix_at(m, first, 0);
    return part;
}

/* nelems elements of any type but f64 -> float, and back. Rounds to nearest even; what is too
 * large becomes infinite, a NaN stays one. No step depends on hardware that rounds or flushes. */
void weft_elements_widen(float *dest, const void *source, weft_dtype dtype, size_t nelems);
void weft_elements_narrow(void *dest, weft_dtype dtype, const float *source, size_t nelems);

/* dest = op over sources[0], sources[1], ... in this order, nsources >= 1. All are rows x cols.
 * f64 from f64 sources; every other type from sources of any types but f64, computed in float and
 * rounded once at the end. dest may be exactly one of the sources. MAX and MIN give NaN where any
 * source has one. */
void weft_elements_reduce(const weft_matrix *dest, const weft_matrix *sources, int nsources,
                          weft_op op);

/* dest = source, both rows x cols of one type. They may be the same, but not overlap otherwise. */
void weft_elements_copy(const weft_matrix *dest, const weft_matrix *source);

#endif
