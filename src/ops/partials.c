/* SPDX-License-Identifier: BSD-3-Clause */
/* Pieces are made in turns: some rows of each peer's piece, then of the own one, and so on. A
 * member announces through its progress word what it has made: in each turn, the part for the
 * member k after it is step k. So an owner knows from the distance what to wait for. */
#include "ops/partials.h"
#include <errno.h>
#include <string.h>
#include "coll/shown.h"
#include "ops/check.h"
#include "ops/matmul.h"

/* The type that products are kept and added in. */
static weft_dtype sum_dtype(const struct weft_partials *p) {
    return p->a->dtype == WEFT_F64 ? WEFT_F64 : WEFT_F32;
}

bool weft_partials_check(const struct weft_partials *p, const char *c_name, const weft_matrix *c) {
    struct weft_meeting *meeting = p->meeting;
    const weft_matrix *a = p->a, *b = p->b;
    struct weft_right right = {b, c, c_name, -1};
    if (!weft_check_left(meeting, "a", a, p->scales) ||
        !weft_check_right(meeting, a->dtype, p->scales, &right) ||
        !weft_check_equal(meeting, "b", -1, "rows", b->rows, "a->cols", a->cols) ||
        !weft_check_equal(meeting, c_name, -1, "cols", c->cols, "b->cols", b->cols) ||
        !weft_check_sum(meeting, p->op) || !weft_check_matmul(meeting, a->dtype, p->scales))
        return false;
    meeting->mine.facts[WEFT_FACT_DTYPE] = (uint64_t)c->dtype;
    meeting->mine.facts[WEFT_FACT_OP] = (uint64_t)p->op;
    meeting->mine.facts[WEFT_FACT_ROWS] = a->rows;
    meeting->mine.facts[WEFT_FACT_COLS] = b->cols;
    memcpy(meeting->mine.data, &a->cols, sizeof a->cols);
    meeting->data_bytes = sizeof a->cols;
    return true;
}

/* The largest K of all members; each has its own. */
static size_t deepest_of(const struct weft_meeting *meeting) {
    size_t most = 0;
    for (int member = 0; member < meeting->team->npes; member++) {
        size_t depth;
        memcpy(&depth, weft_meeting_offer(meeting, member)->data, sizeof depth);
        most = depth > most ? depth : most;
    }
    return most;
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

/* A member's product of the band. */
static struct weft_shown product_of(const struct weft_partials *p, int member, size_t cols) {
    weft_matrix shape = {NULL, p->a->rows, cols, cols, sum_dtype(p)};
    return weft_shown_of(p->meeting->team, member, (struct weft_place){WEFT_SPACE_WORKSPACE, 0},
                         &shape);
}

static weft_matrix own_product(const struct weft_partials *p, size_t cols) {
    return product_of(p, p->meeting->team->my_pe, cols).at;
}

static weft_matrix cut_piece(const weft_matrix *m, const struct weft_piece *piece) {
    return weft_matrix_part(m, piece->row, piece->rows, piece->col, piece->cols);
}

/* dest, a piece of the band that begins at `col`, = its rows of a x its columns of b. */
static int multiply_piece(const struct weft_partials *p, size_t col, const struct weft_piece *piece,
                          const weft_matrix *dest) {
    weft_matrix a = weft_matrix_rows(p->a, piece->row, piece->rows);
    weft_matrix b = weft_matrix_cols(p->b, col + piece->col, piece->cols);
    if (!p->scales)
        return weft_matmul(&a, &b, NULL, dest);
    struct weft_piece whole = {piece->row, piece->rows, col + piece->col, piece->cols};
    struct weft_scaling scaling = weft_scaling_of(p->scales, 0, &whole);
    return weft_matmul(&a, &b, &scaling, dest);
}

enum weft_product weft_partials_begin(const struct weft_partials *p, bool at_once) {
    struct weft_meeting *meeting = p->meeting;
    if (!at_once)
        return WEFT_PRODUCT_IN_PIECES;
    if (meeting->team->npes == 1 || weft_meeting_refused(meeting) || p->band_cols < p->b->cols)
        return WEFT_PRODUCT_AT_ONCE;
    struct weft_piece whole = {0, p->a->rows, 0, p->b->cols};
    weft_matrix product = own_product(p, p->b->cols);
    int error = multiply_piece(p, 0, &whole, &product);
    if (error)
        weft_meeting_refuse(meeting, error, "%s", weft_fail_text());
    return WEFT_PRODUCT_MADE;
}

/* One band of a call. */
struct work {
    const struct weft_partials *partials;
    size_t col, cols;
    const struct weft_piece *pieces;
    const weft_matrix *dest;   /* of the own piece */
    weft_matrix own;           /* the own product of the own piece */
    size_t turns, rows;        /* of every piece in a turn; fewer or none where it ends */
    uint32_t begin;            /* of the progress words */
    struct weft_factor factor; /* the band's columns of b */
};

/* The part of a member's piece that is made in a turn. */
static struct weft_piece part_of(const struct work *w, int member, size_t turn) {
    struct weft_piece part = w->pieces[member];
    size_t before = turn * w->rows < part.rows ? turn * w->rows : part.rows;
    size_t left = part.rows - before;
    part.row += before;
    part.rows = left < w->rows ? left : w->rows;
    return part;
}

/* A turn's rows of `whole`, which is cut like the own piece. */
static weft_matrix own_part(const struct work *w, const weft_matrix *whole, size_t turn) {
    int me = w->partials->meeting->team->my_pe;
    struct weft_piece part = part_of(w, me, turn);
    return weft_matrix_rows(whole, part.row - w->pieces[me].row, part.rows);
}

/* A turn's part of the own piece of the sum, over the members in team order. */
static void reduce_turn(const struct work *w, size_t turn) {
    const struct weft_team *team = w->partials->meeting->team;
    struct weft_piece part = part_of(w, team->my_pe, turn);
    struct weft_shown sources[team->npes];
    for (int member = 0; member < team->npes; member++) {
        struct weft_shown product = product_of(w->partials, member, w->cols);
        sources[member] = weft_shown_part(&product, part.row, part.rows, part.col, part.cols);
    }
    sources[team->my_pe].at = own_part(w, &w->own, turn);
    weft_matrix dest = own_part(w, w->dest, turn);
    weft_shown_reduce(&dest, sources, team, w->partials->op);
}

/* The whole band in one product. */
static int multiply_at_once(const struct work *w) {
    const struct weft_partials *p = w->partials;
    struct weft_team *team = p->meeting->team;
    weft_matrix product = own_product(p, w->cols);
    struct weft_piece whole = {0, p->a->rows, 0, w->cols};
    uint32_t done = weft_progress_begin(team, 1) + 1;
    int error = multiply_piece(p, w->col, &whole, &product);
    weft_progress_set(team, done);
    for (int distance = 1; distance < team->npes; distance++)
        weft_progress_wait(team, weft_team_member_after(p->meeting->team, distance), done);
    return error;
}

/* --- In turns -------------------------------------------------------------------------------- */

/* So few rows that a product is still in the second-level cache when it is reduced; none where
 * turns cost more than that saves: where b does not stay in the cache from one to the next, or is
 * not the same for all pieces, and for 16-bit types, whose products are too fast. The same on all
 * members: bits may depend on it. */
static size_t rows_of_turn(const struct work *w, size_t cols) {
    enum { B_BYTES = 3 << 19, PRODUCT_BYTES = 9 << 16, ROWS_MIN = 64, ROWS_STEP = 32 };
    size_t row_bytes = cols * weft_element_bytes(w->own.dtype);
    if (row_bytes == 0 || cols < w->cols || w->partials->b->dtype != w->own.dtype ||
        deepest_of(w->partials->meeting) * row_bytes > B_BYTES)
        return 0;
    size_t rows = PRODUCT_BYTES / row_bytes / ROWS_STEP * ROWS_STEP;
    return rows > ROWS_MIN ? rows : ROWS_MIN;
}

static void plan_turns(struct work *w) {
    struct weft_team *team = w->partials->meeting->team;
    size_t rows = 0, cols = 0;
    for (int member = 0; member < team->npes; member++) {
        rows = w->pieces[member].rows > rows ? w->pieces[member].rows : rows;
        cols = w->pieces[member].cols > cols ? w->pieces[member].cols : cols;
    }
    w->rows = rows_of_turn(w, cols);
    w->rows = w->rows ? w->rows : rows;
    w->turns = rows ? (rows + w->rows - 1) / w->rows : 0;
    w->begin = weft_progress_begin(team, (uint32_t)w->turns * (uint32_t)(team->npes - 1));
    weft_matrix b = weft_matrix_cols(w->partials->b, w->col, w->cols);
    if (w->turns > 1)
        w->factor = weft_matmul_pack(&b, w->rows);
}

/* The step that `maker` ends with a turn's part of the piece of the member `distance` after it. */
static uint32_t step_of(const struct work *w, size_t turn, int distance) {
    uint32_t steps = (uint32_t)w->partials->meeting->team->npes - 1;
    return w->begin + (uint32_t)turn * steps + (uint32_t)distance;
}

/* A peer's distance to this member is what is left of a round. */
static uint32_t step_of_peer(const struct work *w, size_t turn, int distance) {
    return step_of(w, turn, w->partials->meeting->team->npes - distance);
}

/* Whether all peers have made their parts of a turn. */
static bool peers_have_made(const struct work *w, size_t turn) {
    struct weft_team *team = w->partials->meeting->team;
    for (int distance = 1; distance < team->npes; distance++) {
        int member = weft_team_member_after(team, distance);
        if (!weft_progress_reached(team, member, step_of_peer(w, turn, distance)))
            return false;
    }
    return true;
}

static void await_peers(const struct work *w, size_t turn) {
    struct weft_team *team = w->partials->meeting->team;
    for (int distance = 1; distance < team->npes; distance++)
        weft_progress_wait(team, weft_team_member_after(team, distance),
                           step_of_peer(w, turn, distance));
}

/* All share the packed b, if there is one. */
static int multiply_part(const struct work *w, const struct weft_piece *part,
                         const weft_matrix *dest) {
    if (!w->factor.packed)
        return multiply_piece(w->partials, w->col, part, dest);
    weft_matrix a = weft_matrix_rows(w->partials->a, part->row, part->rows);
    return weft_matmul_by(&a, &w->factor, dest);
}

/* A part that fails counts as made: nobody waits for it in vain. */
static int multiply_turn(const struct work *w, size_t turn) {
    struct weft_meeting *meeting = w->partials->meeting;
    int me = meeting->team->my_pe, error = 0;
    weft_matrix product = own_product(w->partials, w->cols);
    for (int distance = 1; distance <= meeting->team->npes; distance++) {
        int member = weft_team_member_after(meeting->team, distance);
        struct weft_piece part = part_of(w, member, turn);
        weft_matrix dest = member == me ? own_part(w, &w->own, turn) : cut_piece(&product, &part);
        int failed = multiply_part(w, &part, &dest);
        error = error ? error : failed;
        if (member != me)
            weft_progress_set(meeting->team, step_of(w, turn, distance));
    }
    return error;
}

/* What all peers have made is reduced while the own product is hot. A member that is ahead of the
 * others goes on, and reduces the rest at the end. */
static int take_turns(struct work *w) {
    size_t reduced = 0;
    int error = 0;
    w->own = w->dest->dtype == w->own.dtype ? *w->dest : w->own;
    plan_turns(w);
    for (size_t turn = 0; turn < w->turns; turn++) {
        int failed = multiply_turn(w, turn);
        error = error ? error : failed;
        for (; reduced <= turn && peers_have_made(w, reduced); reduced++)
            reduce_turn(w, reduced);
    }
    for (; reduced < w->turns; reduced++) {
        await_peers(w, reduced);
        reduce_turn(w, reduced);
    }
    return error;
}

int weft_partials_band(const struct weft_partials *p, size_t col, size_t cols,
                       const struct weft_piece *pieces, enum weft_product how,
                       const weft_matrix *dest) {
    struct weft_team *team = p->meeting->team;
    if (team->npes == 1)
        return multiply_piece(p, col, &pieces[0], dest);
    weft_matrix product = own_product(p, cols);
    struct work work = {.partials = p,
                        .col = col,
                        .cols = cols,
                        .pieces = pieces,
                        .dest = dest,
                        .own = cut_piece(&product, &pieces[team->my_pe]),
                        .rows = p->a->rows};
    if (how == WEFT_PRODUCT_IN_PIECES)
        return take_turns(&work);
    int error = how == WEFT_PRODUCT_AT_ONCE ? multiply_at_once(&work) : 0;
    reduce_turn(&work, 0);
    return error;
}
