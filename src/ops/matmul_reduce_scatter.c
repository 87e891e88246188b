/* SPDX-License-Identifier: BSD-3-Clause */
/* weft_matmul_reduce_scatter: c_shard = this member's rows of the sum of all members' a x b; and
 * its variant with 8-bit factors and scales. */
#include <errno.h>
#include <weft.h>
#include "ops/matmul_on_stream.h"
#include "ops/partials.h"

/* Assigns the rows of the sum to the members in turn. Returns -EINVAL with text unless they are all
 * rows of a. */
static int assign_rows(const struct weft_meeting *meeting, struct weft_piece *pieces) {
    size_t row = 0, rows = meeting->mine.facts[WEFT_FACT_ROWS];
    for (int member = 0; member < meeting->team->npes; member++) {
        size_t shard = weft_meeting_offer(meeting, member)->facts[WEFT_FACT_OWN];
        pieces[member] = (struct weft_piece){.row = row, .rows = shard};
        row += shard;
    }
    if (row != rows)
        return weft_fail(
            -EINVAL, "the members' c_shards have %zu rows together, but a->rows is %zu", row, rows);
    return 0;
}

/* A barrier after each band, and the settling after the last band, let the workspace be reused. */
static int run_bands(struct weft_partials *p, struct weft_piece *pieces, enum weft_product how,
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
            weft_sync_barrier(team);
    }
    return weft_meeting_settle(p->meeting, error);
}

/* Small pieces of 8-bit factors are never computed separately, because each would widen b again. */
static bool scatters_at_once(const struct weft_partials *p) {
    size_t npes = (size_t)p->meeting->team->npes;
    return !weft_partials_by_rows(p) &&
           (p->scales || weft_partials_at_once(npes, p->a->rows, p->b->cols));
}

static int offer_reduce_scatter(struct weft_partials *p, const weft_matrix *c_shard) {
    int error =
        weft_partials_offer(p, &(struct weft_matrix_argument){"c_shard", -1, c_shard, false});
    if (!error)
        p->meeting->mine.facts[WEFT_FACT_OWN] = c_shard->rows;
    return error;
}

/* Does the call after weft_meeting_open, which has returned `error`, and closes the meeting. */
static int call_reduce_scatter(struct weft_partials *p, const weft_matrix *c_shard, int error) {
    struct weft_meeting *meeting = p->meeting;
    enum weft_product how;
    error = error ? error : offer_reduce_scatter(p, c_shard);
    error = error ? error : weft_partials_plan(p, 0);
    error = error ? error : weft_partials_begin(p, scatters_at_once(p), &how);
    weft_meeting_post(meeting, error);
    error = weft_partials_agree(p);
    if (error)
        return weft_meeting_close(meeting, error);
    struct weft_piece pieces[meeting->team->npes];
    error = assign_rows(meeting, pieces);
    if (!error) {
        how = weft_partials_agreed(p, how, scatters_at_once(p));
        error = run_bands(p, pieces, how, c_shard);
    }
    return weft_meeting_close(meeting, error);
}

int weft_matmul_reduce_scatter(shmem_team_t team, const weft_matrix *a, const weft_matrix *b,
                               weft_op op, weft_matrix *c_shard, weft_stream stream) {
    WEFT_IN_CALL(__func__);
    if (stream != WEFT_STREAM_HOST)
        return weft_matmul_reduce_scatter_on_stream(
            team, &(struct weft_fused_reduction){a, b, c_shard, op, NULL}, stream);
    struct weft_meeting meeting;
    struct weft_partials partials = {.meeting = &meeting, .a = a, .b = b, .op = op};
    int error = weft_meeting_open(&meeting, team, WEFT_CALL_MATMUL_REDUCE_SCATTER, stream);
    return call_reduce_scatter(&partials, c_shard, error);
}

int weft_scaled_matmul_reduce_scatter(shmem_team_t team, const weft_matrix *a,
                                      const weft_matrix *a_scale, const weft_matrix *b,
                                      const weft_matrix *b_scale, const weft_matrix *bias,
                                      weft_op op, weft_matrix *c_shard, weft_stream stream) {
    WEFT_IN_CALL(__func__);
    struct weft_meeting meeting;
    struct weft_scales scales = {a_scale, b_scale, bias};
    if (stream != WEFT_STREAM_HOST)
        return weft_matmul_reduce_scatter_on_stream(
            team, &(struct weft_fused_reduction){a, b, c_shard, op, &scales}, stream);
    struct weft_partials partials = {
        .meeting = &meeting, .a = a, .b = b, .scales = &scales, .op = op};
    int error = weft_meeting_open(&meeting, team, WEFT_CALL_SCALED_MATMUL_REDUCE_SCATTER, stream);
    return call_reduce_scatter(&partials, c_shard, error);
}
