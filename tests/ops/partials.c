/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: sums of products, piece by piece, at once and before the meeting: the same bits by
 * rows and columns, also with members that have no piece; bands that fill a workspace, and a column
 * that does not fit. PEs: 1 2 3 4 */
#include "ops/partials.h"
#include <errno.h>
#include <shmem.h>
#include <string.h>
#include "base/log.h"
#include "ops/matmul.h"
#include "tap.h"

enum { ROWS = 12, DEPTH = 5, COLS = 8, PES_MAX = 4 };

static int me, npes;
static float factor_a[ROWS * DEPTH], factor_b[DEPTH * COLS], result[ROWS * COLS];

static float a_of(int pe, size_t i) {
    return (float)((i * 7 + (size_t)pe * 3) % 11) - 5;
}
static float b_of(int pe, size_t i) {
    return (float)((i * 5 + (size_t)pe) % 7) - 3;
}

static float sum_of(size_t row, size_t col) {
    float sum = 0;
    for (int pe = 0; pe < npes; pe++)
        for (size_t k = 0; k < DEPTH; k++)
            sum += a_of(pe, row * DEPTH + k) * b_of(pe, k * COLS + col);
    return sum;
}

/* Begins a meeting of the operator that makes these pieces, up to the agreement on its offers. */
static int meet(struct weft_meeting *meeting, struct weft_partials *p, bool at_once,
                enum weft_product *how) {
    int error = weft_meeting_open(meeting, SHMEM_TEAM_WORLD, WEFT_CALL_MATMUL_REDUCE_SCATTER,
                                  WEFT_STREAM_HOST);
    error = error ? error : weft_partials_plan(p, 0);
    uint64_t said[] = {p->a->cols, 0};
    memcpy(meeting->mine.data, said, sizeof said);
    meeting->data_bytes = sizeof said;
    error = error ? error : weft_partials_begin(p, at_once, how);
    weft_meeting_post(meeting, error);
    return weft_meeting_agree(meeting);
}

static size_t wrong_in(const struct weft_piece *piece) {
    size_t wrong = 0;
    for (size_t row = 0; row < piece->rows; row++)
        for (size_t col = 0; col < piece->cols; col++)
            wrong += result[row * piece->cols + col] != sum_of(piece->row + row, piece->col + col);
    return wrong;
}

/* `first` is the part of ROWS or COLS before each member's piece. */
static void sum(const char *what, const size_t *first, bool by_rows, bool at_once, bool made) {
    weft_matrix a = {factor_a, ROWS, DEPTH, DEPTH, WEFT_F32, false};
    weft_matrix b = {factor_b, DEPTH, COLS, COLS, WEFT_F32, false};
    struct weft_meeting meeting;
    struct weft_partials p = {.meeting = &meeting, .a = &a, .b = &b, .op = WEFT_SUM};
    enum weft_product how = WEFT_PRODUCT_IN_PIECES;
    EXPECT(meet(&meeting, &p, made, &how) == 0, "%s: %s", what, weft_fail_text());
    EXPECT(p.band_cols == COLS, "%s: %zu columns a band", what, p.band_cols);
    EXPECT(how == (!made       ? WEFT_PRODUCT_IN_PIECES
                   : npes == 1 ? WEFT_PRODUCT_AT_ONCE
                               : WEFT_PRODUCT_MADE),
           "%s: way %d", what, (int)how);
    struct weft_piece pieces[PES_MAX];
    for (int pe = 0; pe < npes; pe++)
        pieces[pe] = by_rows ? (struct weft_piece){first[pe], first[pe + 1] - first[pe], 0, COLS}
                             : (struct weft_piece){0, ROWS, first[pe], first[pe + 1] - first[pe]};
    memset(result, 0x7f, sizeof result);
    weft_matrix dest = {result, pieces[me].rows, pieces[me].cols, pieces[me].cols, WEFT_F32, false};
    how = at_once ? WEFT_PRODUCT_AT_ONCE : how;
    int error = weft_partials_band(&p, 0, COLS, pieces, how, &dest);
    EXPECT(error == 0, "%s: %d, %s", what, error, weft_fail_text());
    error = weft_meeting_close(&meeting, weft_meeting_settle(&meeting, error));
    EXPECT(error == 0 && wrong_in(&pieces[me]) == 0, "%s: %d, %zu wrong elements", what, error,
           wrong_in(&pieces[me]));
}

static void sums(void) {
    static const size_t rows[][PES_MAX + 1] = {
        {0, 12}, {0, 7, 12}, {0, 5, 5, 12}, {0, 1, 6, 6, 12}};
    static const size_t cols[][PES_MAX + 1] = {{0, 8}, {0, 8, 8}, {0, 3, 4, 8}, {0, 2, 4, 6, 8}};
    tap_case("every member gets its piece of the sum, in pieces, at once and made before");
    sum("rows, in pieces", rows[npes - 1], true, false, false);
    sum("rows, at once", rows[npes - 1], true, true, false);
    sum("rows, made before", rows[npes - 1], true, false, true);
    sum("columns, in pieces", cols[npes - 1], false, false, false);
    sum("columns, at once", cols[npes - 1], false, true, false);
    sum("columns, made before", cols[npes - 1], false, false, true);
}

/* Only plans, of factors that are not read. */
static void bands(void) {
    tap_case("a band fills a workspace at most, and a column that does not fit is refused");
    size_t room = weft_team_workspace_capacity() / sizeof(float);
    static const size_t cols_of[] = {1, 3, 1000};
    for (size_t i = 0; i < 3; i++) {
        size_t cols = cols_of[i], rows = room / cols;
        weft_matrix a = {NULL, rows, 1, 1, WEFT_F32, false},
                    b = {NULL, 1, cols + 1, cols + 1, WEFT_F32, false};
        struct weft_meeting meeting = {.team = weft_team_find(SHMEM_TEAM_WORLD)};
        struct weft_partials p = {.meeting = &meeting, .a = &a, .b = &b};
        int error = weft_partials_plan(&p, room); /* no column of such elements fits */
        EXPECT(npes == 1 || error == -ENOMEM, "error %d", error);
        EXPECT(npes > 1 || p.band_cols == cols + 1, "alone: %zu columns", p.band_cols);
    }
    weft_matrix a = {NULL, room / 3, 1, 1, WEFT_F32, false}, b = {NULL, 1, 7, 7, WEFT_F32, false};
    struct weft_meeting meeting = {.team = weft_team_find(SHMEM_TEAM_WORLD)};
    struct weft_partials p = {.meeting = &meeting, .a = &a, .b = &b};
    if (npes == 2) { /* it commits a workspace, which takes a while */
        int error = weft_partials_plan(&p, sizeof(float)); /* as much as the product */
        EXPECT(error == 0 && p.band_cols == 1, "error %d, %zu columns", error, p.band_cols);
        EXPECT(p.free_at == room / 3 * sizeof(float), "free at %zu", p.free_at);
    }
    a.rows = 0;
    EXPECT(weft_partials_plan(&p, 0) == 0, "no rows");
    EXPECT(p.band_cols == 7 && p.free_at == 0, "no rows: %zu columns", p.band_cols);
}

static void choice(void) {
    tap_case("small products are made at once, and those whose pieces are thin");
    EXPECT(weft_partials_at_once(4, 128, 128), "16384 elements");
    EXPECT(!weft_partials_at_once(4, 4096, 128), "pieces of 1024");
    EXPECT(weft_partials_at_once(4, 2048, 1024), "pieces of 512 rows of a wide product");
    EXPECT(!weft_partials_at_once(2, 2000, 1000), "the other piece is less than the whole");
}

int main(void) {
    shmem_init();
    me = shmem_my_pe();
    npes = shmem_n_pes();
    tap_start(me);
    for (size_t i = 0; i < ROWS * DEPTH; i++)
        factor_a[i] = a_of(me, i);
    for (size_t i = 0; i < DEPTH * COLS; i++)
        factor_b[i] = b_of(me, i);
    choice();
    bands();
    if (weft_matmul_supports(WEFT_F32) == 0)
        sums();
    else
        tap_case("sums # SKIP no library of matrix products is installed");
    shmem_finalize();
    return tap_finish();
}
