/* SPDX-License-Identifier: BSD-3-Clause */
/* Element kernels of the tensor collectives: conversion of narrow types and the reduction of many
 * sources into one. One pass over all sources, a block at a time, so that everything between them
 * stays in the first-level cache; sources are taken in the order given, so results have the same
 * bits on every PE and in every run. */
#ifndef WEFT_COLL_ELEMENTS_H
#define WEFT_COLL_ELEMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weft.h>
#include "coll/fold.h"

/* Bytes of one element; 0 for an unknown type. */
size_t weft_element_bytes(weft_dtype dtype);

/* Names as in weft.h; "?" for what is unknown. */
const char *weft_element_name(weft_dtype dtype);
const char *weft_op_name(weft_op op);

/* Whether there is such a reduction of elements of this type, and then which. */
bool weft_element_reduces(weft_dtype dtype, weft_op op);
struct weft_reduction weft_element_reduction(weft_dtype dtype, weft_op op);

/* Where element (row, col) of a matrix lies. */
static inline void *weft_matrix_at(const weft_matrix *m, size_t row, size_t col) {
    return (char *)m->data + (row * m->ld + col) * weft_element_bytes(m->dtype);
}

/* The part of a matrix that begins at (row, col). */
static inline weft_matrix weft_matrix_part(const weft_matrix *m, size_t row, size_t rows,
                                           size_t col, size_t cols) {
    void *data = rows > 0 && cols > 0 ? weft_matrix_at(m, row, col) : NULL;
    return (weft_matrix){data, rows, cols, m->ld, m->dtype};
}

static inline weft_matrix weft_matrix_rows(const weft_matrix *m, size_t row, size_t rows) {
    return weft_matrix_part(m, row, rows, 0, m->cols);
}

static inline weft_matrix weft_matrix_cols(const weft_matrix *m, size_t col, size_t cols) {
    return weft_matrix_part(m, 0, m->rows, col, cols);
}

/* Bytes from the first element to the end of the last. */
static inline size_t weft_matrix_span(const weft_matrix *m) {
    return m->rows > 0 && m->cols > 0
               ? ((m->rows - 1) * m->ld + m->cols) * weft_element_bytes(m->dtype)
               : 0;
}

/* nelems floating-point elements of 32 bits or fewer -> float, and, of 16 or 32, back. Rounds to
 * nearest even; what is too large becomes infinite, a NaN stays one. No step depends on hardware
 * that rounds or flushes. */
void weft_elements_widen(float *dest, const void *source, weft_dtype dtype, size_t nelems);
void weft_elements_narrow(void *dest, weft_dtype dtype, const float *source, size_t nelems);

/* 8-bit floats as bf16, which has all their values. */
void weft_elements_widen_bf16(uint16_t *dest, const void *source, weft_dtype dtype, size_t nelems);

/* dest[i] = source[i] * factor * scales[i] + bias[i]. dest may be source. */
void weft_elements_scale(float *dest, const float *source, float factor, const float *scales,
                         const float *bias, size_t nelems);

/* dest = op over sources[0], sources[1], ... in this order, nsources >= 1. All are rows x cols. op
 * is one that dest's type has. f32 and 16-bit floats from sources of any of these types, computed
 * in float and rounded once at the end; every other type from sources of its own. dest may be
 * exactly one of the sources. MAX and MIN give NaN where any source has one. */
void weft_elements_reduce(const weft_matrix *dest, const weft_matrix *sources, int nsources,
                          weft_op op);

/* The same where sources may be sums of several: an average is one over `of`; nsources >= 2. */
void weft_elements_reduce_sums(const weft_matrix *dest, const weft_matrix *sources, int nsources,
                               weft_op op, int of);

/* What a step of a fold begins with, and makes. */
enum weft_fold_step {
    WEFT_FOLD_WHOLE = 0,
    WEFT_FOLD_FROM_PARTIAL = 1, /* sources[0] is a partial result, the others are sources */
    WEFT_FOLD_TO_PARTIAL = 2,   /* a partial result, else the result */
};

/* to = the fold of the chunk's elements, as weft_fold_all has it; also of a folding of weft.h. */
void weft_elements_fold(const struct weft_folding *folding, int step, void *to,
                        const struct weft_chunk *chunk);

/* dest = source, both rows x cols of one type. They may be the same, but not overlap otherwise. */
void weft_elements_copy(const weft_matrix *dest, const weft_matrix *source);

#endif
