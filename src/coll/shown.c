/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll/shown.h"
#include <stdlib.h>
#include "core/far.h"
#include "core/route.h"

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

/* --- Copies ---------------------------------------------------------------------------------- */

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

/* --- Reductions ------------------------------------------------------------------------------ */

/* So many elements of each far member's matrix are here at a time. */
struct stage {
    size_t rows, cols, elem_bytes;
    char *room;
};

static struct stage stage_open(const weft_matrix *dest, const struct weft_shown *shown, int npes) {
    enum { STAGE_BYTES = 256 << 10 };
    struct stage stage = {.rows = dest->rows, .cols = dest->cols};
    size_t nfar = 0;
    for (int member = 0; member < npes; member++) {
        size_t bytes = weft_element_bytes(shown[member].at.dtype);
        stage.elem_bytes = bytes > stage.elem_bytes ? bytes : stage.elem_bytes;
        nfar += shown[member].at.data == NULL;
    }
    size_t most = STAGE_BYTES / stage.elem_bytes;
    stage.cols = stage.cols < most ? stage.cols : most;
    most /= stage.cols;
    stage.rows = stage.rows < most ? stage.rows : most;
    stage.room = malloc(nfar * stage.rows * stage.cols * stage.elem_bytes);
    if (!stage.room)
        weft_job_panic("no memory for copies of %zu members' parts", nfar);
    return stage;
}

/* One stage: dest from what is shown at (row, col). */
static void stage_reduce(const struct stage *stage, const weft_matrix *dest, size_t row, size_t col,
                         const struct weft_shown *shown, const struct weft_team *team, weft_op op) {
    weft_matrix sources[team->npes];
    char *room = stage->room;
    for (int member = 0; member < team->npes; member++) {
        struct weft_shown part = weft_shown_part(&shown[member], row, dest->rows, col, dest->cols);
        sources[member] = part.at;
        if (part.at.data)
            continue;
        sources[member].data = room;
        sources[member].ld = dest->cols;
        weft_shown_copy(&sources[member], &part, team);
        room += stage->rows * stage->cols * stage->elem_bytes;
    }
    weft_shown_complete(team);
    weft_elements_reduce(dest, sources, team->npes, op);
}

static void reduce_staged(const weft_matrix *dest, const struct weft_shown *shown,
                          const struct weft_team *team, weft_op op) {
    struct stage stage = stage_open(dest, shown, team->npes);
    for (size_t row = 0; row < dest->rows; row += stage.rows)
        for (size_t col = 0; col < dest->cols; col += stage.cols) {
            size_t rows = dest->rows - row, cols = dest->cols - col;
            rows = rows < stage.rows ? rows : stage.rows;
            cols = cols < stage.cols ? cols : stage.cols;
            weft_matrix part = weft_matrix_part(dest, row, rows, col, cols);
            stage_reduce(&stage, &part, row, col, shown, team, op);
        }
    free(stage.room);
}

void weft_shown_reduce(const weft_matrix *dest, const struct weft_shown *shown,
                       const struct weft_team *team, weft_op op) {
    weft_matrix sources[team->npes];
    bool here = true;
    for (int member = 0; member < team->npes; member++) {
        sources[member] = shown[member].at;
        here = here && shown[member].at.data;
    }
    if (here)
        weft_elements_reduce(dest, sources, team->npes, op);
    else if (dest->rows > 0 && dest->cols > 0)
        reduce_staged(dest, shown, team, op);
}
