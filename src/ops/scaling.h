/* SPDX-License-Identifier: BSD-3-Clause */
/* What is done to a product before it is rounded:
 *
 *   c(i, j) = (a x b)(i, j) * rows(i) * cols(j) + bias(j) */
#ifndef WEFT_OPS_SCALING_H
#define WEFT_OPS_SCALING_H

#include <weft.h>
#include "coll/elements.h"

/* f32: one scale for all, 1 x 1, or one for each row of the product, M x 1, and for each column,
 * 1 x N. bias: 1 x N of any type that can be widened, or none, of no columns. */
struct weft_scaling {
    weft_matrix rows, cols, bias;
};

/* As callers give them: those of a, and for every b its own; bias may be NULL. */
struct weft_scales {
    const weft_matrix *a, *b, *bias;
};

/* A part of a product: some rows of a times some columns of a b. */
struct weft_piece {
    size_t row, rows, col, cols;
};

struct weft_scaling weft_scaling_of(const struct weft_scales *scales, size_t b,
                                    const struct weft_piece *piece);
struct weft_scaling weft_scaling_part(const struct weft_scaling *scaling,
                                      const struct weft_piece *piece);

/* dest = product, scaled. product is f32, and may be dest. */
void weft_scaling_apply(const struct weft_scaling *scaling, const weft_matrix *dest,
                        const weft_matrix *product);

#endif
