/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll/shown.h"
#include "core/dispatch.h"

struct weft_shown weft_shown_part(const struct weft_shown *shown, size_t row, size_t rows,
                                  size_t col, size_t cols) {
    struct weft_shown part = *shown;
    if (shown->at.data)
        part.at = weft_matrix_part(&shown->at, row, rows, col, cols);
    else
        part.place.offset += (row * shown->at.ld + col) * weft_element_bytes(shown->at.dtype);
    part.at.rows = rows;
    part.at.cols = cols;
    return part;
}

void weft_shown_copy(const weft_matrix *dest, const struct weft_shown *shown,
                     const struct weft_team *team) {
    if (shown->at.data) {
        weft_elements_copy(dest, &shown->at);
        return;
    }
    struct weft_strided rows = {weft_element_bytes(dest->dtype), dest->cols, dest->rows,
                                (ptrdiff_t)dest->ld, (ptrdiff_t)shown->at.ld};
    weft_far_get_strided(dest->data, weft_place_own(shown->place, team), &rows, shown->pe, true);
}

void weft_shown_pull(void *dest, struct weft_place place, size_t bytes,
                     const struct weft_team *team, int member) {
    weft_far_get(dest, weft_place_own(place, team), bytes, weft_team_world_pe(team, member), true);
}

void weft_shown_complete(const struct weft_team *team) {
    if (team->far)
        weft_far_quiet();
}
