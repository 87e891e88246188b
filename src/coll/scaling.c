/* SPDX-License-Identifier: BSD-3-Clause */
/* Products are scaled in strips of columns: the scales and the bias of a strip are converted once
 * and stay in the cache. A strip is wide enough that its rows are read at the speed of memory (with
 * 256 columns it takes twice as long). */
#include "coll/scaling.h"
#include <string.h>

enum { STRIP = 1024 };

struct weft_scaling weft_scaling_part(const struct weft_scaling *s,
                                      const struct weft_piece *piece) {
    struct weft_scaling part = *s;
    if (s->rows.rows != 1)
        part.rows = weft_matrix_rows(&s->rows, piece->row, piece->rows);
    if (s->cols.cols != 1)
        part.cols = weft_matrix_cols(&s->cols, piece->col, piece->cols);
    if (s->bias.cols > 0)
        part.bias = weft_matrix_cols(&s->bias, piece->col, piece->cols);
    return part;
}

struct weft_scaling weft_scaling_of(const struct weft_scales *scales, size_t b,
                                    const struct weft_piece *piece) {
    struct weft_scaling whole = {.rows = *scales->a, .cols = scales->b[b]};
    if (scales->bias)
        whole.bias = scales->bias[b];
    return weft_scaling_part(&whole, piece);
}

static void fill_scales(const struct weft_scaling *s, float scales[STRIP], size_t col, size_t n) {
    const float *from = s->cols.data;
    for (size_t i = 0; i < n; i++)
        scales[i] = from[s->cols.cols == 1 ? 0 : col + i];
}

static void fill_bias(const struct weft_scaling *s, float bias[STRIP], size_t col, size_t n) {
    if (s->bias.cols > 0)
        weft_elements_widen(bias, weft_matrix_at(&s->bias, 0, col), s->bias.dtype, n);
    else
        memset(bias, 0, n * sizeof *bias);
}

static float row_scale(const struct weft_scaling *s, size_t row) {
    return *(const float *)weft_matrix_at(&s->rows, s->rows.rows == 1 ? 0 : row, 0);
}

void weft_scaling_apply(const struct weft_scaling *s, const weft_matrix *dest,
                        const weft_matrix *product) {
    float scales[STRIP], bias[STRIP], result[STRIP];
    for (size_t col = 0; col < dest->cols; col += STRIP) {
        size_t left = dest->cols - col, n = left < STRIP ? left : STRIP;
        fill_scales(s, scales, col, n);
        fill_bias(s, bias, col, n);
        for (size_t row = 0; row < dest->rows; row++) {
            void *at = weft_matrix_at(dest, row, col);
            float *to = dest->dtype == WEFT_F32 ? at : result;
            weft_elements_scale(to, weft_matrix_at(product, row, col), row_scale(s, row), scales,
                                bias, n);
            if (to != at)
                weft_elements_narrow(at, dest->dtype, result, n);
        }
    }
}
