/* SPDX-License-Identifier: BSD-3-Clause */
/* The tasks of the kernels for products of 8-bit factors, shared with the kernels. Steps and
 * leading dimensions are in elements. */
#ifndef WEFT_FUSED_SCALE_H
#define WEFT_FUSED_SCALE_H

#include "weft/addr.h"

/* The types of the tasks: the values of weft_dtype. */
enum { WEFT_SCALE_F32 = 1, WEFT_SCALE_BF16 = 3, WEFT_SCALE_F16 = 4, WEFT_SCALE_F8E4M3 = 5 };

/* Converts lines of 8-bit floats to bf16, which has all their values. Lines of dest have no gaps.
 */
struct weft_widen_task {
    uint16_t *dest;
    const uint8_t *source;
    size_t lines, nelems, ld; /* nelems of a line */
    int type;
};

/* dest(i, j) = source(i, j) * rows[i * row_step] * cols[j * col_step] + bias[j], rounded to `type`.
 * Rows of source have no gaps. bias may be NULL. */
struct weft_scale_task {
    void *dest;
    const float *source;
    size_t nrows, ncols, ld;
    const float *rows, *cols;
    const void *bias;
    size_t row_step, col_step;
    int type, bias_type;
};

#endif
