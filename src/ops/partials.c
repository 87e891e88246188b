/* SPDX-License-Identifier: BSD-3-Clause */
/* A member announces each piece that it has made through its progress word: piece k, for the member
 * k after it, is step k. So an owner knows from the distance what to wait for. */
#include "ops/partials.h"
#include <errno.h>
#include "coll/elements.h"
#include "ops/matmul.h"

/* The type that products are kept and added in. */
static weft_dtype sum_dtype(const struct weft_partials *p) {
    return p->a->dtype == WEFT_F64 ? WEFT_F64 : WEFT_F32;
}

void weft_partials_plan(struct weft_partials *p, size_t more) {
    size_t rows = p->a->rows, cols = p->b->cols, element = weft_element_bytes(sum_dtype(p)) + more;
    p->band_cols = cols;
    p->free_at = 0;
    if (weft_meeting_refused(p->meeting) || p->meeting->team->npes == 1 || rows == 0 || cols == 0)
        return;
    size_t most = weft_team_workspace_capacity() / element / rows;
    if (most < cols)
        p->band_cols = most;
    if (most == 0)
        weft_meeting_refuse(p->meeting, -ENOMEM, "a column of %zu rows is more than a workspace",
                            rows);
    weft_meeting_commit(p->meeting, p->band_cols * rows * element);
    p->free_at = p->band_cols * rows * weft_element_bytes(sum_dtype(p));
}

bool weft_partials_at_once(size_t npieces, size_t split, size_t other) {
    enum { ENOUGH = 1024 };
    return split / npieces < ENOUGH && (npieces - 1) * other > split;
}

/* A member's product of the band, or a piece of it. */
static weft_matrix product_of(const struct weft_partials *p, int member, size_t cols) {
    void *workspace = weft_team_workspace_of(p->meeting->team, member);
    return (weft_matrix){workspace, p->a->rows, cols, cols, sum_dtype(p)};
}

static weft_matrix cut(const weft_matrix *m, const struct weft_piece *piece) {
    return weft_matrix_part(m, piece->row, piece->rows, piece->col, piece->cols);
}

/* dest, a piece of the band that begins at `col`, = its rows of a x its columns of b. */
static int multiply(const struct weft_partials *p, size_t col, const struct weft_piece *piece,
                    const weft_matrix *dest) {
    weft_matrix a = weft_matrix_rows(p->a, piece->row, piece->rows);
    weft_matrix b = weft_matrix_cols(p->b, col + piece->col, piece->cols);
    return weft_matmul(&a, &b, dest);
}

/* All members' products of this member's piece, waited for, in team order. */
static void reduce(const struct weft_partials *p, uint32_t begin, size_t cols,
                   const struct weft_piece *piece, const weft_matrix *own,
                   const weft_matrix *dest) {
    struct weft_team *team = p->meeting->team;
    weft_matrix sources[team->npes];
    for (int distance = 1; distance < team->npes; distance++) {
        int member = weft_meeting_member(p->meeting, distance);
        uint32_t step = (uint32_t)(team->npes - distance);
        weft_progress_wait(team, member, begin + step, p->meeting->name);
        weft_matrix product = product_of(p, member, cols);
        sources[member] = cut(&product, piece);
    }
    sources[team->my_pe] = *own;
    weft_elements_reduce(dest, sources, team->npes, p->op);
}

int weft_partials_band(const struct weft_partials *p, size_t col, size_t cols,
                       const struct weft_piece *pieces, bool at_once, const weft_matrix *dest) {
    struct weft_team *team = p->meeting->team;
    int me = team->my_pe, error = 0;
    if (team->npes == 1)
        return multiply(p, col, &pieces[me], dest);
    uint32_t steps = (uint32_t)team->npes - 1, begin = weft_progress_begin(team, steps);
    weft_matrix product = product_of(p, me, cols), own = cut(&product, &pieces[me]);
    if (at_once) {
        error = multiply(p, col, &(struct weft_piece){0, p->a->rows, 0, cols}, &product);
        weft_progress_set(team, begin + steps);
    }
    for (uint32_t step = 1; step <= steps && !at_once; step++) {
        const struct weft_piece *piece = &pieces[weft_meeting_member(p->meeting, (int)step)];
        weft_matrix theirs = cut(&product, piece);
        int failed = multiply(p, col, piece, &theirs);
        error = error ? error : failed;
        weft_progress_set(team, begin + step);
    }
    if (!at_once && !error) {
        own = dest->dtype == own.dtype ? *dest : own;
        error = multiply(p, col, &pieces[me], &own);
    }
    reduce(p, begin, cols, &pieces[me], &own, dest);
    return error;
}
