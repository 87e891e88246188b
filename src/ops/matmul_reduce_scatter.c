/* SPDX-License-Identifier: BSD-3-Clause */
/* weft_matmul_reduce_scatter: c_shard = the own rows of the sum of all members' a x b. */
#include <errno.h>
#include <weft.h>
#include "coll/elements.h"
#include "ops/check.h"
#include "ops/partials.h"

/* The members' rows of c, one after another; they must be all rows of a. */
static int assign_rows(const struct weft_meeting *meeting, struct weft_piece *pieces) {
    size_t row = 0, rows = meeting->mine.facts[WEFT_FACT_ROWS];
    for (int member = 0; member < meeting->team->npes; member++) {
        size_t shard = weft_meeting_offer(meeting, member)->facts[WEFT_FACT_OWN];
        pieces[member] = (struct weft_piece){.row = row, .rows = shard};
        row += shard;
    }
    if (row != rows)
        return weft_meeting_fail(meeting, -EINVAL,
                                 "the members' c_shards have %zu rows together, but a->rows is %zu",
                                 row, rows);
    return 0;
}

/* What follows a band, a barrier or in the end the settling, lets its workspace be written again.
 */
static int run(struct weft_partials *p, struct weft_piece *pieces, enum weft_product how,
               const weft_matrix *c_shard) {
    struct weft_team *team = p->meeting->team;
    int error = 0;
    for (size_t col = 0; col < p->b->cols; col += p->band_cols) {
        size_t left = p->b->cols - col, cols = left < p->band_cols ? left : p->band_cols;
        for (int member = 0; member < team->npes; member++)
            pieces[member].cols = cols;
        weft_matrix dest = weft_matrix_cols(c_shard, col, cols);
        int failed = weft_partials_band(p, col, cols, pieces, how, &dest);
        error = error ? error : failed;
        if (left > cols)
            weft_sync_barrier(team, p->meeting->name);
    }
    return weft_meeting_settle(p->meeting, error);
}

int weft_matmul_reduce_scatter(shmem_team_t team, const weft_matrix *a, const weft_matrix *b,
                               weft_op op, weft_matrix *c_shard, weft_stream stream) {
    struct weft_meeting meeting;
    int error = weft_meeting_open(&meeting, team, WEFT_CALL_MATMUL_REDUCE_SCATTER, stream);
    if (error)
        return error;
    struct weft_partials partials = {&meeting, a, b, op, 0, 0};
    enum weft_product how = WEFT_PRODUCT_IN_PIECES;
    if (weft_partials_check(&partials, "c_shard", c_shard)) {
        size_t npes = (size_t)meeting.team->npes;
        meeting.mine.facts[WEFT_FACT_OWN] = c_shard->rows;
        weft_partials_plan(&partials, 0);
        how = weft_partials_begin(&partials, weft_partials_at_once(npes, a->rows, b->cols));
    }
    weft_meeting_post(&meeting);
    error = weft_meeting_agree(&meeting);
    struct weft_piece pieces[meeting.team->npes];
    if (!error)
        error = assign_rows(&meeting, pieces);
    if (!error)
        error = run(&partials, pieces, how, c_shard);
    return weft_meeting_close(&meeting, error);
}
