/* SPDX-License-Identifier: BSD-3-Clause */
/* Scaling of a product before it is rounded:
 *
 *   c(i, j) = (a x b)(i, j) * rows(i) * cols(j) + bias(j) */
#ifndef WEFT_COLL_SCALING_H
#define WEFT_COLL_SCALING_H

#include <weft.h>
#include "coll/elements.h"

/* Scales are f32: rows is M x 1 and cols is 1 x N, with a scale for each row and column of the
 * product, or 1 x 1. bias is 1 x N, of any type that can be widened; without columns if there is no
 * bias. */
struct weft_scaling {
    weft_matrix rows, cols, bias;
};

/* The caller's arguments: the scales of a, then of each b; bias may be NULL. */
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

/* dest = the scaled product. product is f32, and may be dest. */
void weft_scaling_apply(const struct weft_scaling *scaling, const weft_matrix *dest,
                        const weft_matrix *product);

#endif
