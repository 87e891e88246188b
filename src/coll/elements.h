/* SPDX-License-Identifier: BSD-3-Clause */
/* Element kernels of the tensor collectives: conversion of narrow types, and reduction of several
 * sources into one. All sources are processed in one pass, a block at a time, so that intermediate
 * results stay in the first-level cache. Sources are taken in the given order, so results have the
 * same bits on every PE and in every run. */
#ifndef WEFT_COLL_ELEMENTS_H
#define WEFT_COLL_ELEMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weft.h>
#include "coll/fold.h"

/* Returns the bytes of an element; 0 for an unknown type. */
size_t weft_element_bytes(weft_dtype dtype);

/* Return the names as in weft.h; "?" for an unknown value. */
const char *weft_element_name(weft_dtype dtype);
const char *weft_op_name(weft_op op);

/* weft_element_reduces returns whether elements of this type can be reduced with `op`. If so,
 * weft_element_reduction returns the reduction. */
bool weft_element_reduces(weft_dtype dtype, weft_op op);
struct weft_reduction weft_element_reduction(weft_dtype dtype, weft_op op);

/* Returns the bytes from the start of a matrix to element (row, col), and the element's address. */
static inline size_t weft_matrix_offset(const weft_matrix *m, size_t row, size_t col) {
    size_t line = m->transposed ? col : row, within = m->transposed ? row : col;
    return (line * m->ld + within) * weft_element_bytes(m->dtype);
}
static inline void *weft_matrix_at(const weft_matrix *m, size_t row, size_t col) {
    return (char *)m->data + weft_matrix_offset(m, row, col);
}

/* Returns the transpose of a matrix, in the same memory. */
static inline weft_matrix weft_matrix_transpose(const weft_matrix *m) {
    return (weft_matrix){m->data, m->cols, m->rows, m->ld, m->dtype, !m->transposed};
}

/* Returns a matrix without gaps at `data`, of the shape, type and orientation of m. */
static inline weft_matrix weft_matrix_dense(const weft_matrix *m, void *data) {
    size_t ld = m->transposed ? m->rows : m->cols;
    return (weft_matrix){data, m->rows, m->cols, ld, m->dtype, m->transposed};
}

/* Returns whether a matrix has no gaps. */
static inline bool weft_matrix_is_dense(const weft_matrix *m) {
    size_t lines = m->transposed ? m->cols : m->rows, width = m->transposed ? m->rows : m->cols;
    return lines <= 1 || m->ld == width;
}

/* Returns the largest power of two, up to 256, that divides the address of every row, or of every
 * column if the matrix is transposed. */
static inline uint32_t weft_matrix_alignment(const weft_matrix *m) {
    uintptr_t bits = (uintptr_t)m->data | (m->ld * weft_element_bytes(m->dtype)) | 256;
    return (uint32_t)(bits & -bits);
}

/* Returns the part of a matrix that begins at (row, col). */
static inline weft_matrix weft_matrix_part(const weft_matrix *m, size_t row, size_t rows,
                                           size_t col, size_t cols) {
    void *data = rows > 0 && cols > 0 ? weft_matrix_at(m, row, col) : NULL;
    return (weft_matrix){data, rows, cols, m->ld, m->dtype, m->transposed};
}

static inline weft_matrix weft_matrix_rows(const weft_matrix *m, size_t row, size_t rows) {
    return weft_matrix_part(m, row, rows, 0, m->cols);
}

static inline weft_matrix weft_matrix_cols(const weft_matrix *m, size_t col, size_t cols) {
    return weft_matrix_part(m, 0, m->rows, col, cols);
}

/* Returns the bytes from the first element to the end of the last. */
static inline size_t weft_matrix_span(const weft_matrix *m) {
    return m->rows > 0 && m->cols > 0
               ? weft_matrix_offset(m, m->rows - 1, m->cols - 1) + weft_element_bytes(m->dtype)
               : 0;
}

/* Convert nelems floating-point elements of at most 32 bits to floats, and floats to elements of 16
 * or 32 bits. They round to nearest even; a value that is too large becomes infinite, a NaN remains
 * a NaN. No step depends on hardware that rounds or flushes. */
void weft_elements_widen(float *dest, const void *source, weft_dtype dtype, size_t nelems);
void weft_elements_narrow(void *dest, weft_dtype dtype, const float *source, size_t nelems);

/* Converts 8-bit floats to bf16, which can represent all their values. */
void weft_elements_widen_bf16(uint16_t *dest, const void *source, weft_dtype dtype, size_t nelems);

/* dest[i] = source[i] * factor * scales[i] + bias[i]. dest may be source. */
void weft_elements_scale(float *dest, const float *source, float factor, const float *scales,
                         const float *bias, size_t nelems);

/* dest = op over sources[0], sources[1], ... in this order; nsources >= 1. All matrices are rows x
 * cols and row-major. dest's type must have `op`. If dest is f32 or a 16-bit float, each source may
 * have any of these types, and the result is computed in float and rounded once at the end;
 * otherwise all types are the same. dest may be exactly one of the sources. MAX and MIN return NaN
 * if any source is NaN. */
void weft_elements_reduce(const weft_matrix *dest, const weft_matrix *sources, int nsources,
                          weft_op op);

/* As weft_elements_reduce, but sources may be sums of several sources: an average is divided by
 * `of`. nsources >= 2. */
void weft_elements_reduce_sums(const weft_matrix *dest, const weft_matrix *sources, int nsources,
                               weft_op op, int of);

/* dest = the sum of sources[i] * factors[i] in this order, in float, or in double for F64, rounded
 * once. All have one type: F32, F64, BF16 or F16. factors NULL: all are 1; nsources >= 1. */
void weft_elements_sum_scaled(const weft_matrix *dest, const weft_matrix *sources,
                              const float *factors, int nsources);

/* The input and output of a step of a fold. */
enum weft_fold_step {
    WEFT_FOLD_WHOLE = 0,
    WEFT_FOLD_FROM_PARTIAL = 1, /* sources[0] is a partial result, the others are sources */
    WEFT_FOLD_TO_PARTIAL = 2,   /* makes a partial result, otherwise the result */
};

/* to = the fold of the chunk's elements, as weft_fold_all does, also for reductions of weft.h. */
void weft_elements_fold(const struct weft_folding *folding, int step, void *to,
                        const struct weft_chunk *chunk);

/* Copies source to dest, both rows x cols of one type, each row-major or transposed; if exactly one
 * is transposed, elements have at most 8 bytes. They may be the same, but must not overlap
 * otherwise. */
void weft_elements_copy(const weft_matrix *dest, const weft_matrix *source);

#endif
