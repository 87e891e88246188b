/* SPDX-License-Identifier: BSD-3-Clause */
/* weft_all_gather_matmul: c[j] = (the members' shards, stacked) x b[j].
 *
 * A shard is multiplied where its owner has it: own first, then the next member's, and so on, so
 * that nothing is copied. Every product packs b again inside the library, though; where that costs
 * more than copying A (few rows, wide b), or a_full is wanted, A is gathered first and multiplied
 * at once. A private shard is copied to the workspace once, in bands of rows if it is larger. */
#include <errno.h>
#include <sched.h>
#include "base/clock.h"
#include <weft.h>
#include "coll/elements.h"
#include "ops/check.h"
#include "ops/matmul.h"

enum { DTYPE, COLS, ROWS, LD, CLAIM }; /* facts of an offer */
enum { PAGE_BYTES = 4096 };
#define NO_CLAIM UINT64_MAX /* a member without outputs claims no number of rows */

struct gather {
    struct weft_meeting meeting;
    const weft_matrix *shard, *b;
    const weft_matrix *c, *full;
    size_t nb;
    size_t band_rows;  /* of a private shard, that fit into a workspace */
    size_t free_at;    /* where the workspace is not taken by the shard */
    size_t early_rows; /* of the own shard, multiplied while peers were missing */
};

/* --- Arguments ------------------------------------------------------------------------------- */

static bool check_pair(struct gather *g, int j, size_t rows) {
    struct weft_meeting *meeting = &g->meeting;
    const weft_matrix *b = &g->b[j], *c = &g->c[j];
    return weft_check_matrix(meeting, "b", j, b) && weft_check_matrix(meeting, "c", j, c) &&
           weft_check_dtype(meeting, "b", j, b, g->shard->dtype) &&
           weft_check_dtype(meeting, "c", j, c, g->shard->dtype) &&
           weft_check_equal(meeting, "b", j, "rows", b->rows, "a_shard->cols", g->shard->cols) &&
           weft_check_equal(meeting, "c", j, "cols", c->cols, "that of its b", b->cols) &&
           weft_check_equal(meeting, "c", j, "rows", c->rows, "that of the other outputs", rows);
}

static bool check_full(struct gather *g) {
    struct weft_meeting *meeting = &g->meeting;
    return weft_check_matrix(meeting, "a_full", -1, g->full) &&
           weft_check_dtype(meeting, "a_full", -1, g->full, g->shard->dtype) &&
           weft_check_equal(meeting, "a_full", -1, "cols", g->full->cols, "a_shard->cols",
                            g->shard->cols);
}

static bool check(struct gather *g) {
    struct weft_meeting *meeting = &g->meeting;
    if (!weft_check_matrix(meeting, "a_shard", -1, g->shard) || (g->full && !check_full(g)))
        return false;
    if (g->nb > 0 && (!g->b || !g->c)) {
        weft_meeting_refuse(meeting, -EINVAL, "%s is NULL", g->b ? "c" : "b");
        return false;
    }
    size_t rows = g->full ? g->full->rows : g->nb > 0 ? g->c[0].rows : NO_CLAIM;
    for (size_t j = 0; j < g->nb; j++)
        if (!check_pair(g, (int)j, rows))
            return false;
    meeting->mine.facts[DTYPE] = (uint64_t)g->shard->dtype;
    meeting->mine.facts[COLS] = g->shard->cols;
    meeting->mine.facts[ROWS] = g->shard->rows;
    meeting->mine.facts[CLAIM] = rows;
    return weft_check_matmul(meeting, g->shard->dtype);
}

static size_t rows_of(const struct gather *g, int member) {
    return weft_meeting_offer(&g->meeting, member)->facts[ROWS];
}

/* Where a member's rows begin in c; for member npes, how many rows there are. */
static size_t first_row(const struct gather *g, int member) {
    size_t first = 0;
    for (int before = 0; before < member; before++)
        first += rows_of(g, before);
    return first;
}

/* Every member sees all claims, so all find the same one wrong. */
static int check_claims(const struct gather *g) {
    int npes = g->meeting.team->npes;
    size_t rows = first_row(g, npes);
    for (int member = 0; member < npes; member++) {
        uint64_t claim = weft_meeting_offer(&g->meeting, member)->facts[CLAIM];
        if (claim != NO_CLAIM && claim != rows)
            return weft_meeting_fail(&g->meeting, -EINVAL,
                                     "PE %d: c[0].rows (or a_full->rows) is %zu, but the members' "
                                     "a_shards have %zu rows together",
                                     weft_team_world_pe(g->meeting.team, member), (size_t)claim,
                                     rows);
    }
    return 0;
}

/* --- The shards, as peers see them ----------------------------------------------------------- */

/* Copies rows [first, first + band_rows) of the own shard to where peers look for them. */
static void stage(const struct gather *g, size_t first) {
    const struct weft_offer *mine = &g->meeting.mine;
    if (mine->input.space != WEFT_SPACE_WORKSPACE || first >= g->shard->rows)
        return;
    size_t left = g->shard->rows - first, rows = left < g->band_rows ? left : g->band_rows;
    weft_matrix from = weft_matrix_rows(g->shard, first, rows);
    weft_matrix to = {weft_team_workspace_of(g->meeting.team, g->meeting.team->my_pe), rows,
                      from.cols, from.cols, from.dtype};
    weft_elements_copy(&to, &from);
}

static void offer_shard(struct gather *g) {
    struct weft_offer *mine = &g->meeting.mine;
    const weft_matrix *shard = g->shard;
    size_t row_bytes = shard->cols * weft_element_bytes(shard->dtype);
    g->band_rows = row_bytes ? weft_team_workspace_capacity() / row_bytes : PTRDIFF_MAX;
    mine->input = weft_place_of(shard->data, weft_matrix_span(shard));
    mine->facts[LD] = shard->ld;
    if (mine->input.space != WEFT_SPACE_PRIVATE || g->meeting.team->npes == 1)
        return;
    mine->input = (struct weft_place){WEFT_SPACE_WORKSPACE, 0};
    mine->facts[LD] = shard->cols;
    size_t rows = shard->rows < g->band_rows ? shard->rows : g->band_rows;
    if (shard->rows > 0 && rows == 0)
        weft_meeting_refuse(&g->meeting, -ENOMEM, "a row of a_shard is more than a workspace");
    weft_meeting_commit(&g->meeting, rows * row_bytes);
    g->free_at = (rows * row_bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
    if (!weft_meeting_refused(&g->meeting))
        stage(g, 0);
}

static bool shown_in_bands(const struct gather *g, int member) {
    return member != g->meeting.team->my_pe &&
           weft_meeting_offer(&g->meeting, member)->input.space == WEFT_SPACE_WORKSPACE;
}

/* How many bands it takes to show all shards; the same on all members, since all count themselves
 * like the others here. */
static size_t bands(const struct gather *g) {
    size_t most = 1;
    for (int member = 0; member < g->meeting.team->npes; member++) {
        size_t rows = rows_of(g, member), needed = (rows + g->band_rows - 1) / g->band_rows;
        bool staged = weft_meeting_offer(&g->meeting, member)->input.space == WEFT_SPACE_WORKSPACE;
        most = staged && needed > most ? needed : most;
    }
    return most;
}

/* What of a member's shard is to be read in a band, and its first row within the shard: a part of
 * one that is shown in bands, else all of it in band 0. */
static weft_matrix shard_band(const struct gather *g, int member, size_t band, size_t *first) {
    const struct weft_offer *offer = weft_meeting_offer(&g->meeting, member);
    bool in_bands = shown_in_bands(g, member);
    size_t all = rows_of(g, member), limit = in_bands ? g->band_rows : all;
    *first = band == 0 ? 0 : in_bands && band < all / limit + 1 ? band * limit : all;
    *first = *first < all ? *first : all;
    size_t rows = all - *first < limit ? all - *first : limit;
    if (member == g->meeting.team->my_pe)
        return weft_matrix_rows(g->shard, *first, rows);
    bool empty = rows == 0 || g->shard->cols == 0;
    void *data = empty ? NULL : weft_place_at(offer->input, g->meeting.team, member);
    return (weft_matrix){data, rows, g->shard->cols, offer->facts[LD], g->shard->dtype};
}

/* --- The products ---------------------------------------------------------------------------- */

/* c[j], rows from `first` on = rows x b[j] for all j. */
static int multiply(const struct gather *g, const weft_matrix *rows, size_t first) {
    int error = 0;
    for (size_t j = 0; j < g->nb && !error; j++) {
        weft_matrix c = weft_matrix_rows(&g->c[j], first, rows->rows);
        error = weft_matmul(rows, &g->b[j], &c);
    }
    return error;
}

static size_t cols_of_all_b(const struct gather *g) {
    size_t cols = 0;
    for (size_t j = 0; j < g->nb; j++)
        cols += g->b[j].cols;
    return cols;
}

/* Where the product of the own shard and b[j] waits until it may be written to c. */
static weft_matrix early_panel(const struct gather *g, size_t j) {
    size_t before = 0;
    for (size_t i = 0; i < j; i++)
        before += g->b[i].cols;
    char *at = (char *)weft_team_workspace_of(g->meeting.team, g->meeting.team->my_pe) + g->free_at;
    at += before * g->shard->rows * weft_element_bytes(g->shard->dtype);
    return (weft_matrix){at, g->shard->rows, g->b[j].cols, g->b[j].cols, g->shard->dtype};
}

static bool all_arrive_soon(const struct gather *g) {
    enum { PATIENCE_NS = 100 * 1000 };
    uint64_t begin = weft_clock_ns();
    do {
        if (weft_meeting_complete(&g->meeting))
            return true;
        sched_yield();
    } while (weft_clock_ns() - begin < PATIENCE_NS);
    return false;
}

/* While peers are missing, the own shard is multiplied into the workspace, because no output may be
 * written before all arguments are known to be right. Only products of a millisecond and more, and
 * no fewer rows at a time than give the same bits as one product (oneDNN: 256, measured). */
static void multiply_early(struct gather *g) {
    enum { EARLY_ROWS = 256 };
    const double worth = 1e8;
    size_t rows = g->shard->rows, cols = cols_of_all_b(g);
    size_t bytes = rows * cols * weft_element_bytes(g->shard->dtype);
    if (g->full || rows < 2 * EARLY_ROWS ||
        2.0 * (double)rows * (double)cols * (double)g->shard->cols < worth || all_arrive_soon(g) ||
        weft_team_workspace_commit(g->meeting.team, g->free_at + bytes))
        return;
    int error = 0;
    while (g->early_rows < rows && !error && !weft_meeting_complete(&g->meeting)) {
        size_t left = rows - g->early_rows, now = left < 2 * EARLY_ROWS ? left : EARLY_ROWS;
        weft_matrix part = weft_matrix_rows(g->shard, g->early_rows, now);
        for (size_t j = 0; j < g->nb && !error; j++) {
            weft_matrix panel = early_panel(g, j);
            panel = weft_matrix_rows(&panel, g->early_rows, now);
            error = weft_matmul(&part, &g->b[j], &panel);
        }
        g->early_rows += error ? 0 : now;
    }
}

/* The own shard: what is early is copied, the rest multiplied. */
static int multiply_own(const struct gather *g, size_t first) {
    for (size_t j = 0; j < g->nb && g->early_rows > 0; j++) {
        weft_matrix panel = early_panel(g, j), c = weft_matrix_rows(&g->c[j], first, g->early_rows);
        panel = weft_matrix_rows(&panel, 0, g->early_rows);
        weft_elements_copy(&c, &panel);
    }
    size_t left = g->shard->rows - g->early_rows;
    weft_matrix rest = weft_matrix_rows(g->shard, g->early_rows, left);
    return multiply(g, &rest, first + g->early_rows);
}

/* Whether to gather A first, and where to. Packing b once more for every member costs about as much
 * per byte as copying A; pieces of many rows are large enough not to mind. */
static bool gather_first(const struct gather *g, weft_matrix *full) {
    enum { ROWS_ENOUGH = 1024 };
    size_t npes = (size_t)g->meeting.team->npes, rows = first_row(g, (int)npes);
    if (g->full) {
        *full = *g->full;
        return true;
    }
    if (npes == 1 || rows / npes >= ROWS_ENOUGH || (npes - 1) * cols_of_all_b(g) <= rows)
        return false;
    size_t cols = g->shard->cols, bytes = rows * cols * weft_element_bytes(g->shard->dtype);
    if (weft_team_workspace_commit(g->meeting.team, g->free_at + bytes))
        return false; /* then in place: slower, but right */
    char *workspace = weft_team_workspace_of(g->meeting.team, g->meeting.team->my_pe);
    *full = (weft_matrix){workspace + g->free_at, rows, cols, cols, g->shard->dtype};
    return true;
}

/* One band of a member's shard: into `full`, or if that is NULL multiplied where it lies. */
static int take_band(const struct gather *g, int member, size_t band, const weft_matrix *full) {
    size_t within;
    weft_matrix rows = shard_band(g, member, band, &within);
    size_t first = first_row(g, member) + within;
    if (full) {
        weft_matrix dest = weft_matrix_rows(full, first, rows.rows);
        weft_elements_copy(&dest, &rows);
        return 0;
    }
    return member == g->meeting.team->my_pe && band == 0 ? multiply_own(g, first)
                                                         : multiply(g, &rows, first);
}

/* Between bands a barrier says that all have read one, so that the next may take its place. */
static int take_all(struct gather *g, const weft_matrix *full) {
    struct weft_team *team = g->meeting.team;
    size_t nbands = bands(g);
    int error = 0;
    for (size_t band = 0; band < nbands; band++) {
        if (band > 0) {
            stage(g, band * g->band_rows);
            weft_sync_barrier(team, g->meeting.name);
        }
        for (int distance = 0; distance < team->npes; distance++) {
            int failed = take_band(g, weft_meeting_member(&g->meeting, distance), band, full);
            error = error ? error : failed;
        }
        if (band + 1 < nbands)
            weft_sync_barrier(team, g->meeting.name);
    }
    return error;
}

/* Each member chooses its way; settling is the same for both, and the last use of the shards. */
static int run(struct gather *g) {
    weft_matrix full;
    bool first = gather_first(g, &full);
    int error = take_all(g, first ? &full : NULL);
    if (first && !error)
        error = multiply(g, &full, 0);
    return weft_meeting_settle(&g->meeting, error);
}

int weft_all_gather_matmul(shmem_team_t team, const weft_matrix *a_shard, const weft_matrix *b,
                           size_t nb, weft_matrix *c, weft_matrix *a_full, weft_stream stream) {
    struct gather g = {.shard = a_shard, .b = b, .nb = nb, .c = c, .full = a_full};
    int error = weft_meeting_open(&g.meeting, team, WEFT_CALL_ALL_GATHER_MATMUL, stream);
    if (error)
        return error;
    if (check(&g))
        offer_shard(&g);
    weft_meeting_post(&g.meeting);
    if (!weft_meeting_refused(&g.meeting))
        multiply_early(&g);
    error = weft_meeting_agree(&g.meeting);
    if (!error)
        error = check_claims(&g);
    if (!error)
        error = run(&g);
    return weft_meeting_close(&g.meeting, error);
}
