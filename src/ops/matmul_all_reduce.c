/* SPDX-License-Identifier: BSD-3-Clause */
/* weft_matmul_all_reduce: c = the sum of all members' a x b, on every member.
 *
 * Each member reduces one piece of the sum, then all members copy all pieces. The pieces cut the
 * longer side of c: pieces of columns pack a again, pieces of rows b, and the factor on the longer
 * side is the larger one. If weft_partials_by_rows is true, they cut the rows. Every member reduces
 * a small c itself. */
#include <weft.h>
#include "coll/split.h"
#include "ops/far_rows.h"
#include "ops/matmul_on_stream.h"
#include "ops/partials.h"

enum { SMALL_BYTES = 16 << 10 };

static int offer_all_reduce(struct weft_partials *p, const weft_matrix *c) {
    struct weft_matrix_argument argument = {"c", -1, c, false};
    int error = weft_partials_offer(p, &argument);
    error = error ? error : weft_check_equal(&argument, "rows", c->rows, "a->rows", p->a->rows);
    if (error)
        return error;
    p->meeting->mine.facts[WEFT_FACT_OWN] = c->ld; /* others read this member's piece there */
    p->meeting->mine.output = weft_place_of(c->data, weft_matrix_span(c));
    return 0;
}

static bool is_small(const weft_matrix *c) {
    return c->rows * c->cols * weft_element_bytes(c->dtype) <= SMALL_BYTES;
}

static bool cuts_columns(const struct weft_partials *p, const weft_matrix *c) {
    return c->cols >= c->rows && !weft_partials_by_rows(p);
}

/* Returns a member's piece of a band of `cols` columns. */
static struct weft_piece piece_of(const struct weft_partials *p, const weft_matrix *c, size_t cols,
                                  int member) {
    struct weft_piece piece = {0, c->rows, 0, cols};
    if (is_small(c))
        return piece;
    int npes = p->meeting->team->npes;
    bool by_cols = cuts_columns(p, c);
    size_t split = by_cols ? cols : c->rows, begin = weft_split_begin(split, 1, member, npes);
    size_t nelems = weft_split_begin(split, 1, member + 1, npes) - begin;
    if (by_cols)
        piece.col = begin, piece.cols = nelems;
    else
        piece.row = begin, piece.rows = nelems;
    return piece;
}

/* Returns a member's reduced piece of the band that begins at `col`: in its c if that is symmetric,
 * otherwise densely packed in its workspace after the products. */
static struct weft_remote_matrix reduced_piece(const struct weft_partials *p, const weft_matrix *c,
                                               size_t col, const struct weft_piece *piece,
                                               int member) {
    const struct weft_team *team = p->meeting->team;
    const struct weft_offer *offer = weft_meeting_offer(p->meeting, member);
    if (offer->output.space == WEFT_SPACE_PRIVATE) {
        weft_matrix dense = {NULL, piece->rows, piece->cols, piece->cols, c->dtype, false};
        struct weft_place place = {WEFT_SPACE_WORKSPACE, p->free_at};
        return weft_remote_matrix_of(team, member, place, &dense);
    }
    weft_matrix whole = {NULL, c->rows, c->cols, offer->facts[WEFT_FACT_OWN], c->dtype, false};
    struct weft_remote_matrix theirs = weft_remote_matrix_of(team, member, offer->output, &whole);
    return weft_remote_matrix_part(&theirs, piece->row, piece->rows, col + piece->col, piece->cols);
}

/* Returns the place of a piece in c. */
static weft_matrix place_in(const weft_matrix *c, size_t col, const struct weft_piece *piece) {
    return weft_matrix_part(c, piece->row, piece->rows, col + piece->col, piece->cols);
}

/* Fetches the pieces of far members once for all near members, into the workspace of the products,
 * which are all reduced. Returns false if there is not enough room. */
static bool collect_far(const struct weft_partials *p, const weft_matrix *c, size_t col,
                        const struct weft_piece *pieces) {
    enum { ROOM_BYTES = 8 << 20, ALIGNMENT = 64 };
    struct weft_team *team = p->meeting->team;
    struct weft_remote_matrix matrices[team->npes];
    size_t rooms_at[team->npes], most = 0, room = p->free_at / 2 / ALIGNMENT * ALIGNMENT;
    for (int member = 0; member < team->npes; member++) {
        matrices[member] = reduced_piece(p, c, col, &pieces[member], member);
        rooms_at[member] = 0;
        most = pieces[member].cols > most ? pieces[member].cols : most;
    }
    if (most * weft_element_bytes(c->dtype) > room)
        return false;
    struct weft_far_rows far = {.team = team,
                                .matrices = matrices,
                                .rows_least = 1,
                                .rooms_at = rooms_at,
                                .room_bytes = room < ROOM_BYTES ? room : ROOM_BYTES};
    struct weft_far_part part;
    weft_matrix rows;
    weft_far_rows_begin(&far);
    while (weft_far_rows_take(&far, true, &part, &rows)) {
        weft_matrix piece = place_in(c, col, &pieces[part.member]);
        weft_matrix dest = weft_matrix_rows(&piece, part.row, part.rows);
        weft_elements_copy(&dest, &rows);
        weft_far_rows_release(&far);
    }
    return true;
}

/* Copies all pieces of the band to c, after a barrier at which all are reduced. */
static void collect_pieces(const struct weft_partials *p, const weft_matrix *c, size_t col,
                           const struct weft_piece *pieces) {
    struct weft_team *team = p->meeting->team;
    weft_sync_barrier(team);
    bool far_are_copied = team->far && collect_far(p, c, col, pieces);
    for (int distance = 0; distance < team->npes; distance++) {
        int member = weft_team_member_after(team, distance);
        if (far_are_copied && weft_team_member_is_far(team, member))
            continue;
        struct weft_remote_matrix source = reduced_piece(p, c, col, &pieces[member], member);
        weft_matrix dest = place_in(c, col, &pieces[member]);
        weft_remote_matrix_copy(&dest, &source, team);
    }
    weft_remote_matrix_complete(team);
}

/* Returns whether the product is computed in one piece. */
static bool reduces_at_once(const struct weft_partials *p, const weft_matrix *c) {
    bool by_cols = cuts_columns(p, c);
    size_t split = by_cols ? c->cols : c->rows, other = by_cols ? c->rows : c->cols;
    if (is_small(c))
        return true;
    return !weft_partials_by_rows(p) &&
           weft_partials_at_once((size_t)p->meeting->team->npes, split, other);
}

static int run_band(const struct weft_partials *p, const weft_matrix *c, enum weft_product how,
                    size_t col, size_t cols) {
    int me = p->meeting->team->my_pe, npes = p->meeting->team->npes;
    struct weft_piece pieces[npes];
    for (int member = 0; member < npes; member++)
        pieces[member] = piece_of(p, c, cols, member);
    bool direct = is_small(c) || npes == 1;
    weft_matrix dest =
        direct ? weft_matrix_cols(c, col, cols) : reduced_piece(p, c, col, &pieces[me], me).at;
    int error = weft_partials_band(p, col, cols, pieces, how, &dest);
    if (!direct)
        collect_pieces(p, c, col, pieces);
    return error;
}

/* If a band fails on this member, the others still compute it, so all members continue to the end.
 */
static int run_all_bands(struct weft_partials *p, const weft_matrix *c, enum weft_product how) {
    int error = 0;
    for (size_t col = 0; col < c->cols; col += p->band_cols) {
        size_t left = c->cols - col, cols = left < p->band_cols ? left : p->band_cols;
        int failed = run_band(p, c, how, col, cols);
        error = error ? error : failed;
        if (left > cols)
            weft_sync_barrier(p->meeting->team);
    }
    return weft_meeting_settle(p->meeting, error);
}

int weft_matmul_all_reduce(shmem_team_t team, const weft_matrix *a, const weft_matrix *b,
                           weft_op op, weft_matrix *c, weft_stream stream) {
    WEFT_IN_CALL(__func__);
    if (stream != WEFT_STREAM_HOST)
        return weft_matmul_all_reduce_on_stream(
            team, &(struct weft_fused_reduction){a, b, c, op, NULL}, stream);
    struct weft_meeting meeting;
    int error = weft_meeting_open(&meeting, team, WEFT_CALL_MATMUL_ALL_REDUCE, stream);
    struct weft_partials partials = {.meeting = &meeting, .a = a, .b = b, .op = op};
    enum weft_product how;
    error = error ? error : offer_all_reduce(&partials, c);
    error = error ? error : weft_partials_plan(&partials, weft_element_bytes(c->dtype));
    error = error ? error : weft_partials_begin(&partials, reduces_at_once(&partials, c), &how);
    weft_meeting_post(&meeting, error);
    error = weft_partials_agree(&partials);
    if (!error) {
        how = weft_partials_agreed(&partials, how, reduces_at_once(&partials, c));
        error = run_all_bands(&partials, c, how);
    }
    return weft_meeting_close(&meeting, error);
}
