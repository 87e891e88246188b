/* SPDX-License-Identifier: BSD-3-Clause */
/* weft_all_gather_matmul: c[j] = (the members' shards, stacked) x b[j]; and its variant with 8-bit
 * factors and scales.
 *
 * This file checks the arguments and offers the shard to the other members: in place if it is
 * symmetric, otherwise as a copy in the workspace, in bands of rows if it is larger than that. The
 * workspace begins with the scales, one for each row of the shard. If members are far it also has
 * rooms for parts of their shards (ops/far_rows.h). */
#include <errno.h>
#include <string.h>
#include <weft.h>
#include "base/size.h"
#include "coll/band.h"
#include "ops/check.h"
#include "ops/far_rows.h"
#include "ops/gather.h"
#include "ops/matmul.h"
#include "ops/matmul_on_stream.h"

#define NO_CLAIM UINT64_MAX /* the member has no outputs, so it claims no number of rows */

/* --- Arguments ------------------------------------------------------------------------------- */

static int check_pair(const struct weft_gather *g, int j, size_t rows) {
    const weft_matrix *shard = g->shard, *b = &g->b[j], *c = &g->c[j];
    struct weft_matrix_argument of_b = {"b", j, b, false}, of_c = {"c", j, c, false};
    int error = weft_check_right(shard->dtype, g->scales, &of_b, &of_c);
    error = error ? error : weft_check_equal(&of_b, "rows", b->rows, "a_shard->cols", shard->cols);
    error =
        error ? error
              : weft_check_equal(&of_c, "cols", c->cols, "the number of columns of its b", b->cols);
    return error ? error
                 : weft_check_equal(&of_c, "rows", c->rows,
                                    "the number of rows of the other outputs", rows);
}

static int check_full(const struct weft_gather *g) {
    struct weft_matrix_argument full = {"a_full", -1, g->full, false};
    size_t cols = g->shard->cols;
    int error = weft_check_matrix(&full);
    error = error ? error : weft_check_dtype(&full, g->shard->dtype);
    return error ? error : weft_check_equal(&full, "cols", g->full->cols, "a_shard->cols", cols);
}

static int check_lists(const struct weft_gather *g) {
    const char *missing = !g->b ? "b" : !g->c ? "c" : g->scales && !g->scales->b ? "b_scale" : NULL;
    return g->nb == 0 || !missing ? 0 : weft_fail_bare(-EINVAL, "%s is NULL", missing);
}

static size_t rows_claimed(const struct weft_gather *g) {
    return g->full ? g->full->rows : g->nb > 0 ? g->c[0].rows : NO_CLAIM;
}

static bool has_transposed_factor(const struct weft_gather *g) {
    bool transposed = g->shard->transposed;
    for (size_t j = 0; j < g->nb; j++)
        transposed |= g->b[j].transposed;
    return transposed;
}

/* The members of one host must cut far shards in the same way, even if their libraries differ. */
static void offer_data(struct weft_gather *g) {
    g->rows_least =
        weft_matmul_rows_least(g->shard->dtype, g->scales != NULL, has_transposed_factor(g));
    struct weft_gather_data data = {g->rows_least, g->shard->transposed};
    memcpy(g->meeting.mine.data, &data, sizeof data);
    g->meeting.data_bytes = sizeof data;
}

static int check_gather(const struct weft_gather *g) {
    int error =
        weft_check_left(&(struct weft_matrix_argument){"a_shard", -1, g->shard, false}, g->scales);
    error = error || !g->full ? error : check_full(g);
    error = error ? error : check_lists(g);
    for (size_t j = 0; j < g->nb && !error; j++)
        error = check_pair(g, (int)j, rows_claimed(g));
    return error ? error : weft_check_matmul(g->shard->dtype, g->scales);
}

static void offer_facts(struct weft_gather *g) {
    uint64_t *facts = g->meeting.mine.facts;
    facts[WEFT_GATHER_DTYPE] = (uint64_t)g->shard->dtype;
    facts[WEFT_GATHER_COLS] = g->shard->cols;
    facts[WEFT_GATHER_ROWS] = g->shard->rows;
    facts[WEFT_GATHER_CLAIM] = rows_claimed(g);
    offer_data(g);
}

/* Every member reads all claims in the same order, so all return the same error. */
static int check_claims(const struct weft_gather *g) {
    int npes = g->meeting.team->npes;
    size_t rows = weft_gather_first(g, npes);
    for (int member = 0; member < npes; member++) {
        uint64_t claim = weft_meeting_offer(&g->meeting, member)->facts[WEFT_GATHER_CLAIM];
        if (claim != NO_CLAIM && claim != rows)
            return weft_fail(-EINVAL,
                             "PE %d: c[0].rows (or a_full->rows) is %zu, but the members' "
                             "a_shards have %zu rows together",
                             weft_team_world_pe(g->meeting.team, member), (size_t)claim, rows);
    }
    return 0;
}

/* --- The shard ------------------------------------------------------------------------------- */

/* Copies a band of a private shard to the workspace. */
static void stage_shard(const void *call, size_t band) {
    const struct weft_gather *g = call;
    const struct weft_offer *mine = &g->meeting.mine;
    struct weft_band rows = weft_band_of(g->shard->rows, g->band_rows, band);
    if (mine->input.space != WEFT_SPACE_WORKSPACE || rows.nelems == 0)
        return;
    weft_matrix from = weft_matrix_rows(g->shard, rows.first, rows.nelems);
    weft_matrix to = weft_matrix_dense(&from, weft_gather_workspace(g) + mine->input.offset);
    weft_elements_copy(&to, &from);
}

/* Returns the bytes of a workspace that a shard may take, the same on all members: scales may take
 * half of a workspace, and far rows have a part of it. */
static size_t shard_capacity(const struct weft_gather *g) {
    size_t far = g->meeting.team->far ? weft_far_rows_capacity() + weft_page_bytes() : 0;
    return weft_team_workspace_capacity() / (g->scales ? 2 : 1) - far;
}

static int offer_shard(struct weft_gather *g) {
    struct weft_offer *mine = &g->meeting.mine;
    const weft_matrix *shard = g->shard;
    size_t row_bytes = shard->cols * weft_element_bytes(shard->dtype);
    g->band_rows = row_bytes ? shard_capacity(g) / row_bytes : PTRDIFF_MAX;
    mine->input = weft_place_of(shard->data, weft_matrix_span(shard));
    mine->facts[WEFT_GATHER_LD] = shard->ld;
    if (mine->input.space != WEFT_SPACE_PRIVATE || g->meeting.team->npes == 1)
        return 0;
    mine->input = (struct weft_place){WEFT_SPACE_WORKSPACE, g->free_at};
    size_t rows = shard->rows < g->band_rows ? shard->rows : g->band_rows;
    if (shard->rows > 0 && rows == 0)
        return weft_fail_bare(-ENOMEM, "a row of a_shard does not fit into a workspace");
    int error = weft_team_workspace_commit(g->meeting.team, g->free_at + rows * row_bytes);
    g->free_at = weft_page_up(g->free_at + rows * row_bytes);
    if (!error)
        stage_shard(g, 0);
    return error;
}

/* Offers rooms for parts of far shards. No shard has more rows than this member's claim. */
static int offer_rooms(struct weft_gather *g) {
    uint64_t claim = g->meeting.mine.facts[WEFT_GATHER_CLAIM];
    size_t row_bytes = g->shard->cols * weft_element_bytes(g->shard->dtype);
    size_t room = weft_far_rows_room(claim, row_bytes, g->rows_least);
    if (!g->meeting.team->far)
        return 0;
    if (row_bytes > 0 && room == 0 && claim > 0)
        return weft_fail_bare(-ENOMEM,
                              "a row of a_shard does not fit into the %s for rows of far members",
                              weft_size(weft_far_rows_capacity() / 2).text);
    g->meeting.mine.output = (struct weft_place){WEFT_SPACE_WORKSPACE, g->free_at};
    g->free_at += 2 * room;
    return weft_team_workspace_commit(g->meeting.team, g->free_at);
}

/* --- Scales of rows: of this member's shard, then of all rows of A ---------------------------- */

static struct weft_remote_matrix offered_scales(const struct weft_gather *g, int member) {
    weft_matrix shape = {NULL, weft_gather_rows(g, member), 1, 1, WEFT_F32, false};
    return weft_remote_matrix_of(g->meeting.team, member,
                                 (struct weft_place){WEFT_SPACE_WORKSPACE, 0}, &shape);
}

/* Copies the scales to the workspace. A member alone uses the caller's. check_claims finds a wrong
 * number of rows of A later. */
static int offer_scales(struct weft_gather *g) {
    size_t rows = g->shard->rows, claim = g->meeting.mine.facts[WEFT_GATHER_CLAIM];
    size_t all = claim == NO_CLAIM ? 0 : claim, bytes = weft_page_up(rows * sizeof(float));
    size_t most = (weft_team_workspace_capacity() / 4 - weft_page_bytes()) / sizeof(float);
    g->row_scales = *g->scales->a;
    if (g->meeting.team->npes == 1)
        return 0;
    if (rows > most || all > most)
        return weft_fail_bare(-ENOMEM, "the scales of %zu rows do not fit into half a workspace",
                              rows > most ? rows : all);
    int error = weft_team_workspace_commit(g->meeting.team, bytes + all * sizeof(float));
    if (error)
        return error;
    g->free_at = weft_page_up(bytes + all * sizeof(float));
    weft_matrix mine = offered_scales(g, g->meeting.team->my_pe).at;
    for (size_t row = 0; row < rows; row++)
        *(float *)weft_matrix_at(&mine, row, 0) =
            *(const float *)weft_matrix_at(g->scales->a, g->scales->a->rows == 1 ? 0 : row, 0);
    return 0;
}

static void gather_scales(struct weft_gather *g) {
    int npes = g->meeting.team->npes;
    if (!g->scales || npes == 1 || g->nb == 0)
        return;
    size_t first = weft_page_up(g->shard->rows * sizeof(float));
    g->row_scales = (weft_matrix){
        weft_gather_workspace(g) + first, weft_gather_first(g, npes), 1, 1, WEFT_F32, false};
    for (int member = 0; member < npes; member++) {
        struct weft_remote_matrix from = offered_scales(g, member);
        weft_matrix to = weft_matrix_rows(&g->row_scales, weft_gather_first(g, member),
                                          weft_gather_rows(g, member));
        weft_remote_matrix_copy(&to, &from, g->meeting.team);
    }
    weft_remote_matrix_complete(g->meeting.team);
}

/* Returns the number of bands of the largest staged shard: the same on all members, because each
 * counts its own shard, too. */
static size_t count_shard_bands(const struct weft_gather *g) {
    size_t most = 0;
    for (int member = 0; member < g->meeting.team->npes; member++)
        if (weft_gather_is_staged(g, member) && weft_gather_rows(g, member) > most)
            most = weft_gather_rows(g, member);
    return weft_band_count(most, g->band_rows);
}

/* Each member decides for itself whether it gathers A first. The settling is the same in both
 * cases, and follows the last use of the shards. */
static int gather_and_multiply(struct weft_gather *g) {
    struct weft_bands bands = {.meeting = &g->meeting,
                               .count = count_shard_bands(g),
                               .stage = stage_shard,
                               .take = weft_gather_take};
    weft_gather_choose(g);
    gather_scales(g);
    int error = weft_bands_run(&bands, g);
    if (g->gathers && !error)
        error = weft_gather_finish(g);
    return weft_meeting_settle(&g->meeting, error);
}

static int offer_gather(struct weft_gather *g) {
    offer_facts(g);
    int error = g->scales ? offer_scales(g) : 0;
    error = error ? error : offer_shard(g);
    return error ? error : offer_rooms(g);
}

/* Does the call after weft_meeting_open, which has returned `error`, and closes the meeting. */
static int call_gather(struct weft_gather *g, int error) {
    error = error ? error : check_gather(g);
    error = error ? error : offer_gather(g);
    weft_meeting_post(&g->meeting, error);
    if (!error)
        weft_gather_early(g);
    error = weft_meeting_agree(&g->meeting);
    if (!error)
        error = check_claims(g);
    if (!error) {
        g->rows_least =
            weft_meeting_largest(&g->meeting, offsetof(struct weft_offer, data) +
                                                  offsetof(struct weft_gather_data, rows_least));
        error = gather_and_multiply(g);
    }
    return weft_meeting_close(&g->meeting, error);
}

int weft_all_gather_matmul(shmem_team_t team, const weft_matrix *a_shard, const weft_matrix *b,
                           size_t nb, weft_matrix *c, weft_matrix *a_full, weft_stream stream) {
    WEFT_IN_CALL(__func__);
    if (stream != WEFT_STREAM_HOST)
        return weft_all_gather_matmul_on_stream(
            team, &(struct weft_fused_gather){a_shard, b, c, nb, a_full, NULL}, stream);
    struct weft_gather g = {.shard = a_shard, .b = b, .nb = nb, .c = c, .full = a_full};
    int error = weft_meeting_open(&g.meeting, team, WEFT_CALL_ALL_GATHER_MATMUL, stream);
    return call_gather(&g, error);
}

int weft_all_gather_scaled_matmul(shmem_team_t team, const weft_matrix *a_shard,
                                  const weft_matrix *a_scale, const weft_matrix *b,
                                  const weft_matrix *b_scale, size_t nb, const weft_matrix *bias,
                                  weft_matrix *c, weft_matrix *a_full, weft_stream stream) {
    WEFT_IN_CALL(__func__);
    struct weft_scales scales = {a_scale, b_scale, bias};
    if (stream != WEFT_STREAM_HOST)
        return weft_all_gather_matmul_on_stream(
            team, &(struct weft_fused_gather){a_shard, b, c, nb, a_full, &scales}, stream);
    struct weft_gather g = {
        .shard = a_shard, .b = b, .nb = nb, .scales = &scales, .c = c, .full = a_full};
    int error = weft_meeting_open(&g.meeting, team, WEFT_CALL_ALL_GATHER_SCALED_MATMUL, stream);
    return call_gather(&g, error);
}
