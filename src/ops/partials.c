/* SPDX-License-Identifier: BSD-3-Clause */
/* A member announces each piece that it has made through its progress word: piece k, for the member
 * k after it, is step k. So an owner knows from the distance what to wait for. */
#include "ops/partials.h"
#include <errno.h>
#include "base/log.h"
#include "coll/elements.h"
#include "core/sync.h"
#include "ops/check.h"
#include "ops/matmul.h"

/* The type that products are kept and added in. */
static weft_dtype sum_dtype(const struct weft_partials *p) {
    return p->a->dtype == WEFT_F64 ? WEFT_F64 : WEFT_F32;
}

bool weft_partials_check(const struct weft_partials *p, const char *c_name, const weft_matrix *c) {
    struct weft_meeting *meeting = p->meeting;
    const weft_matrix *a = p->a, *b = p->b;
    if (!weft_check_matrix(meeting, "a", -1, a) || !weft_check_matrix(meeting, "b", -1, b) ||
        !weft_check_matrix(meeting, c_name, -1, c) ||
        !weft_check_dtype(meeting, "b", -1, b, a->dtype) ||
        !weft_check_dtype(meeting, c_name, -1, c, a->dtype) ||
        !weft_check_equal(meeting, "b", -1, "rows", b->rows, "a->cols", a->cols) ||
        !weft_check_equal(meeting, c_name, -1, "cols", c->cols, "b->cols", b->cols) ||
        !weft_check_sum(meeting, p->op) || !weft_check_matmul(meeting, a->dtype))
        return false;
    meeting->mine.facts[WEFT_FACT_DTYPE] = (uint64_t)a->dtype;
    meeting->mine.facts[WEFT_FACT_OP] = (uint64_t)p->op;
    meeting->mine.facts[WEFT_FACT_ROWS] = a->rows;
    meeting->mine.facts[WEFT_FACT_COLS] = b->cols;
    return true;
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
    enum { ENOUGH = 1024, FEW_ELEMENTS = 16 << 10 };
    return split * other <= FEW_ELEMENTS ||
           (split / npieces < ENOUGH && (npieces - 1) * other > split);
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

enum weft_product weft_partials_begin(const struct weft_partials *p, bool at_once) {
    struct weft_meeting *meeting = p->meeting;
    if (!at_once)
        return WEFT_PRODUCT_IN_PIECES;
    if (meeting->team->npes == 1 || weft_meeting_refused(meeting) || p->band_cols < p->b->cols)
        return WEFT_PRODUCT_AT_ONCE;
    struct weft_piece whole = {0, p->a->rows, 0, p->b->cols};
    weft_matrix product = product_of(p, meeting->team->my_pe, p->b->cols);
    int error = multiply(p, 0, &whole, &product);
    if (error)
        weft_meeting_refuse(meeting, error, "%s", weft_fail_text());
    return WEFT_PRODUCT_MADE;
}

/* One band of a call. */
struct work {
    const struct weft_partials *partials;
    uint32_t begin; /* of the progress words */
    size_t col, cols;
    const struct weft_piece *pieces;
    const weft_matrix *dest; /* of the own piece */
    weft_matrix own;         /* the own product of the own piece: in dest if the type is right */
};

/* The step after which `member` has made this member's piece. */
static uint32_t step_of(const struct work *w, int member) {
    const struct weft_team *team = w->partials->meeting->team;
    int distance = (team->my_pe - member + team->npes) % team->npes;
    return w->begin + (uint32_t)distance;
}

static bool peers_done(const struct work *w) {
    const struct weft_team *team = w->partials->meeting->team;
    for (int member = 0; member < team->npes; member++)
        if (member != team->my_pe &&
            !weft_word_reached(&weft_team_words_of(team, member)->progress, step_of(w, member)))
            return false;
    return true;
}

static void await_peers(const struct work *w) {
    struct weft_meeting *meeting = w->partials->meeting;
    for (int member = 0; member < meeting->team->npes; member++)
        if (member != meeting->team->my_pe)
            weft_progress_wait(meeting->team, member, step_of(w, member), meeting->name);
}

/* Rows [row, row + rows) of the own piece of the sum, over the members in team order. */
static void reduce(const struct work *w, size_t row, size_t rows) {
    const struct weft_team *team = w->partials->meeting->team;
    struct weft_piece part = w->pieces[team->my_pe];
    part.row += row;
    part.rows = rows;
    weft_matrix sources[team->npes];
    for (int member = 0; member < team->npes; member++) {
        weft_matrix product = product_of(w->partials, member, w->cols);
        sources[member] = cut(&product, &part);
    }
    sources[team->my_pe] = weft_matrix_rows(&w->own, row, rows);
    weft_matrix dest = weft_matrix_rows(w->dest, row, rows);
    weft_elements_reduce(&dest, sources, team->npes, w->partials->op);
}

/* The whole band in one product. */
static int multiply_at_once(const struct work *w) {
    const struct weft_partials *p = w->partials;
    struct weft_team *team = p->meeting->team;
    weft_matrix product = product_of(p, team->my_pe, w->cols);
    struct weft_piece whole = {0, p->a->rows, 0, w->cols};
    int error = multiply(p, w->col, &whole, &product);
    weft_progress_set(team, w->begin + (uint32_t)team->npes - 1);
    return error;
}

static int multiply_for_peers(const struct work *w) {
    struct weft_team *team = w->partials->meeting->team;
    int error = 0;
    for (int step = 1; step < team->npes; step++) {
        const struct weft_piece *piece =
            &w->pieces[weft_meeting_member(w->partials->meeting, step)];
        weft_matrix product = product_of(w->partials, team->my_pe, w->cols);
        weft_matrix theirs = cut(&product, piece);
        int failed = multiply(w->partials, w->col, piece, &theirs);
        error = error ? error : failed;
        weft_progress_set(team, w->begin + (uint32_t)step);
    }
    return error;
}

/* Rows of the own piece in one product: where b fits into the second-level cache, so few that the
 * product is still there when it is reduced. 16-bit products are so fast that packing b for each
 * band costs more. Depends on sizes and types only, as bits may depend on it. */
static size_t own_band_rows(const struct work *w, const struct weft_piece *piece) {
    enum { B_BYTES = 3 << 19, PRODUCT_BYTES = 1 << 19, ROWS_MIN = 64 };
    const weft_matrix *b = w->partials->b;
    size_t b_bytes = b->rows * piece->cols * weft_element_bytes(b->dtype);
    size_t row_bytes = piece->cols * weft_element_bytes(w->own.dtype);
    if (b_bytes > B_BYTES || row_bytes == 0 || b->dtype != w->own.dtype)
        return piece->rows;
    return row_bytes * ROWS_MIN < PRODUCT_BYTES ? PRODUCT_BYTES / row_bytes : ROWS_MIN;
}

/* The own piece, reduced as it is made if the peers have made theirs; returns how many rows are
 * left to reduce at the end through `reduced`. */
static int multiply_own(const struct work *w, size_t *reduced) {
    struct weft_piece piece = w->pieces[w->partials->meeting->team->my_pe], band = piece;
    size_t limit = own_band_rows(w, &piece);
    int error = 0;
    for (size_t row = 0; row < piece.rows && !error; row += band.rows) {
        size_t left = piece.rows - row;
        band.row = piece.row + row;
        band.rows = left < limit ? left : limit;
        weft_matrix own = weft_matrix_rows(&w->own, row, band.rows);
        error = multiply(w->partials, w->col, &band, &own);
        if (limit < piece.rows && peers_done(w)) {
            reduce(w, *reduced, row + band.rows - *reduced);
            *reduced = row + band.rows;
        }
    }
    return error;
}

/* Makes the band's product; `reduced`: how many rows of the own piece are reduced already. */
static int multiply_band(struct work *w, enum weft_product how, size_t *reduced) {
    if (how == WEFT_PRODUCT_MADE)
        return 0;
    int error = how == WEFT_PRODUCT_AT_ONCE ? multiply_at_once(w) : multiply_for_peers(w);
    if (how == WEFT_PRODUCT_IN_PIECES && !error) {
        w->own = w->dest->dtype == w->own.dtype ? *w->dest : w->own;
        error = multiply_own(w, reduced);
    }
    await_peers(w);
    return error;
}

int weft_partials_band(const struct weft_partials *p, size_t col, size_t cols,
                       const struct weft_piece *pieces, enum weft_product how,
                       const weft_matrix *dest) {
    struct weft_team *team = p->meeting->team;
    if (team->npes == 1)
        return multiply(p, col, &pieces[0], dest);
    uint32_t steps = how == WEFT_PRODUCT_MADE ? 0 : (uint32_t)team->npes - 1;
    uint32_t begin = weft_progress_begin(team, steps);
    weft_matrix product = product_of(p, team->my_pe, cols);
    struct work work = {p, begin, col, cols, pieces, dest, cut(&product, &pieces[team->my_pe])};
    size_t reduced = 0;
    int error = multiply_band(&work, how, &reduced);
    reduce(&work, reduced, pieces[team->my_pe].rows - reduced);
    return error;
}
