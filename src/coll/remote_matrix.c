/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll/remote_matrix.h"
#include "core/dispatch.h"

struct weft_remote_matrix weft_remote_matrix_part(const struct weft_remote_matrix *matrix,
                                                  size_t row, size_t rows, size_t col,
                                                  size_t cols) {
    struct weft_remote_matrix part = *matrix;
    if (matrix->at.data)
        part.at = weft_matrix_part(&matrix->at, row, rows, col, cols);
    else
        part.place.offset += weft_matrix_offset(&matrix->at, row, col);
    part.at.rows = rows;
    part.at.cols = cols;
    return part;
}

void weft_remote_matrix_copy(const weft_matrix *dest, const struct weft_remote_matrix *matrix,
                             const struct weft_team *team) {
    if (matrix->at.data) {
        weft_elements_copy(dest, &matrix->at);
        return;
    }
    struct weft_strided rows = {weft_element_bytes(dest->dtype), dest->cols, dest->rows,
                                (ptrdiff_t)dest->ld, (ptrdiff_t)matrix->at.ld};
    weft_far_get_strided(dest->data, weft_place_own(matrix->place, team), &rows, matrix->pe, true);
}

void weft_remote_matrix_pull(void *dest, struct weft_place place, size_t bytes,
                             const struct weft_team *team, int member) {
    weft_far_get(dest, weft_place_own(place, team), bytes, weft_team_world_pe(team, member), true);
}

void weft_remote_matrix_complete(const struct weft_team *team) {
    if (team->far)
        weft_far_quiet();
}
