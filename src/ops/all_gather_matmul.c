/* SPDX-License-Identifier: BSD-3-Clause */
/* weft_all_gather_matmul: c[j] = (the members' shards, stacked) x b[j]; and the same with 8-bit
 * factors and scales, which each member shows at the start of its workspace, one for each row of
 * its shard.
 *
 * A shard is multiplied where its owner has it: own first, then the next member's, and so on, so
 * that nothing is copied. Every product packs b again inside the library, though; where that costs
 * more than copying A (few rows, wide b), or a_full is wanted, A is gathered first and multiplied
 * at once. A private shard is copied to the workspace once, in bands of rows if it is larger.
 * Shards of far members come in copies, each while the one before it is multiplied. */
#include <errno.h>
#include <sched.h>
#include <weft.h>
#include "base/clock.h"
#include "base/size.h"
#include "coll/band.h"
#include "ops/check.h"
#include "ops/landing.h"
#include "ops/matmul.h"

enum { DTYPE, COLS, ROWS, LD, CLAIM }; /* facts of an offer */
enum { EARLY_ROWS = 256 };
#define NO_CLAIM UINT64_MAX /* a member without outputs claims no number of rows */

struct gather {
    struct weft_meeting meeting;
    const weft_matrix *shard, *b;
    const weft_matrix *c, *full;
    size_t nb;
    const struct weft_scales *scales; /* NULL: the products are not scaled */
    weft_matrix row_scales;           /* of all rows of A, or one for all */
    size_t band_rows;                 /* of a private shard, that fit into a workspace */
    size_t early_at;                  /* where the workspace has room for early products */
    size_t early_rows;                /* of the own shard, multiplied while peers were missing */
    size_t free_at;                   /* where the workspace is not taken */
    bool gathers;                     /* A is gathered first: to `gathered` */
    weft_matrix gathered;
    struct weft_landing landing; /* of far shards; or why there is none */
    int landing_error;
};

/* --- Arguments ------------------------------------------------------------------------------- */

static bool check_pair(struct gather *g, int j, size_t rows) {
    struct weft_meeting *meeting = &g->meeting;
    const weft_matrix *b = &g->b[j], *c = &g->c[j];
    struct weft_right right = {b, c, "c", j};
    return weft_check_right(meeting, g->shard->dtype, g->scales, &right) &&
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

static bool check_lists(struct gather *g) {
    const char *missing = !g->b ? "b" : !g->c ? "c" : g->scales && !g->scales->b ? "b_scale" : NULL;
    return g->nb == 0 || !missing ||
           weft_meeting_refuse(&g->meeting, -EINVAL, "%s is NULL", missing);
}

static bool check_gather(struct gather *g) {
    struct weft_meeting *meeting = &g->meeting;
    if (!weft_check_left(meeting, "a_shard", g->shard, g->scales) || (g->full && !check_full(g)) ||
        !check_lists(g))
        return false;
    size_t rows = g->full ? g->full->rows : g->nb > 0 ? g->c[0].rows : NO_CLAIM;
    for (size_t j = 0; j < g->nb; j++)
        if (!check_pair(g, (int)j, rows))
            return false;
    meeting->mine.facts[DTYPE] = (uint64_t)g->shard->dtype;
    meeting->mine.facts[COLS] = g->shard->cols;
    meeting->mine.facts[ROWS] = g->shard->rows;
    meeting->mine.facts[CLAIM] = rows;
    return weft_check_matmul(meeting, g->shard->dtype, g->scales);
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
            return weft_fail(-EINVAL,
                             "PE %d: c[0].rows (or a_full->rows) is %zu, but the members' "
                             "a_shards have %zu rows together",
                             weft_team_world_pe(g->meeting.team, member), (size_t)claim, rows);
    }
    return 0;
}

/* --- The shards, as peers see them ----------------------------------------------------------- */

static char *own_workspace(const struct gather *g) {
    return weft_team_workspace_of(g->meeting.team, g->meeting.team->my_pe);
}

/* Copies a band of the own shard to where peers look for it. */
static void stage_shard(const void *call, size_t band) {
    const struct gather *g = call;
    const struct weft_offer *mine = &g->meeting.mine;
    struct weft_band rows = weft_band_of(g->shard->rows, g->band_rows, band);
    if (mine->input.space != WEFT_SPACE_WORKSPACE || rows.nelems == 0)
        return;
    weft_matrix from = weft_matrix_rows(g->shard, rows.first, rows.nelems);
    weft_matrix to = {own_workspace(g) + mine->input.offset, rows.nelems, from.cols, from.cols,
                      from.dtype};
    weft_elements_copy(&to, &from);
}

/* What all members have for shards in their workspaces; scales may take half of them. */
static size_t shard_capacity(const struct gather *g) {
    return weft_team_workspace_capacity() / (g->scales ? 2 : 1);
}

static void offer_shard(struct gather *g) {
    struct weft_offer *mine = &g->meeting.mine;
    const weft_matrix *shard = g->shard;
    size_t row_bytes = shard->cols * weft_element_bytes(shard->dtype);
    g->band_rows = row_bytes ? shard_capacity(g) / row_bytes : PTRDIFF_MAX;
    mine->input = weft_place_of(shard->data, weft_matrix_span(shard));
    mine->facts[LD] = shard->ld;
    if (mine->input.space != WEFT_SPACE_PRIVATE || g->meeting.team->npes == 1)
        return;
    mine->input = (struct weft_place){WEFT_SPACE_WORKSPACE, g->free_at};
    mine->facts[LD] = shard->cols;
    size_t rows = shard->rows < g->band_rows ? shard->rows : g->band_rows;
    if (shard->rows > 0 && rows == 0)
        weft_meeting_refuse(&g->meeting, -ENOMEM, "a row of a_shard is more than a workspace");
    weft_meeting_commit(&g->meeting, g->free_at + rows * row_bytes);
    g->free_at = weft_page_up(g->free_at + rows * row_bytes);
    if (!weft_meeting_refused(&g->meeting))
        stage_shard(g, 0);
}

/* --- Scales of rows: those of the own shard, then room for those of A ------------------------- */

static struct weft_shown shown_scales(const struct gather *g, int member) {
    weft_matrix shape = {NULL, rows_of(g, member), 1, 1, WEFT_F32};
    return weft_shown_of(g->meeting.team, member, (struct weft_place){WEFT_SPACE_WORKSPACE, 0},
                         &shape);
}

/* A member alone looks them up where the caller has them. A number of rows in A that is wrong is
 * found later. */
static void offer_scales(struct gather *g) {
    size_t rows = g->shard->rows, claim = g->meeting.mine.facts[CLAIM];
    size_t all = claim == NO_CLAIM ? 0 : claim, bytes = weft_page_up(rows * sizeof(float));
    size_t most = (weft_team_workspace_capacity() / 4 - weft_page_bytes()) / sizeof(float);
    g->row_scales = *g->scales->a;
    if (g->meeting.team->npes == 1)
        return;
    if (rows > most || all > most)
        weft_meeting_refuse(&g->meeting, -ENOMEM,
                            "the scales of %zu rows are more than half a workspace",
                            rows > most ? rows : all);
    weft_meeting_commit(&g->meeting, bytes + all * sizeof(float));
    if (weft_meeting_refused(&g->meeting))
        return;
    g->free_at = weft_page_up(bytes + all * sizeof(float));
    weft_matrix mine = shown_scales(g, g->meeting.team->my_pe).at;
    for (size_t row = 0; row < rows; row++)
        *(float *)weft_matrix_at(&mine, row, 0) =
            *(const float *)weft_matrix_at(g->scales->a, g->scales->a->rows == 1 ? 0 : row, 0);
}

/* Those of far members are there when the first of their rows are. */
static void gather_scales(struct gather *g) {
    int npes = g->meeting.team->npes;
    if (!g->scales || npes == 1 || g->nb == 0)
        return;
    size_t first = weft_page_up(g->shard->rows * sizeof(float));
    g->row_scales = (weft_matrix){own_workspace(g) + first, first_row(g, npes), 1, 1, WEFT_F32};
    for (int member = 0; member < npes; member++) {
        struct weft_shown from = shown_scales(g, member);
        weft_matrix to = weft_matrix_rows(&g->row_scales, first_row(g, member), rows_of(g, member));
        weft_shown_copy(&to, &from, g->meeting.team);
    }
}

static bool is_staged(const struct gather *g, int member) {
    return weft_meeting_offer(&g->meeting, member)->input.space == WEFT_SPACE_WORKSPACE;
}

/* How many bands it takes to show all shards; the same on all members, since all count themselves
 * like the others here. */
static size_t count_shard_bands(const struct gather *g) {
    size_t most = 0;
    for (int member = 0; member < g->meeting.team->npes; member++)
        if (is_staged(g, member) && rows_of(g, member) > most)
            most = rows_of(g, member);
    return weft_band_count(most, g->band_rows);
}

/* What of a member's shard is to be read in a band: a part of one that is shown in bands, else all
 * of it in band 0. */
static struct weft_band band_rows(const struct gather *g, int member, size_t band) {
    bool own = member == g->meeting.team->my_pe;
    size_t width = is_staged(g, member) && !own ? g->band_rows : PTRDIFF_MAX;
    return weft_band_of(rows_of(g, member), width, band);
}

static struct weft_shown shard_band(const struct gather *g, int member, size_t band) {
    struct weft_band rows = band_rows(g, member, band);
    if (member == g->meeting.team->my_pe)
        return (struct weft_shown){.at = weft_matrix_rows(g->shard, rows.first, rows.nelems)};
    const struct weft_offer *offer = weft_meeting_offer(&g->meeting, member);
    weft_matrix shape = {NULL, rows.nelems, g->shard->cols, offer->facts[LD], g->shard->dtype};
    return weft_shown_of(g->meeting.team, member, offer->input, &shape);
}

/* Where the rows of a member's band begin in c. */
static size_t first_of_band(const struct gather *g, int member, size_t band) {
    return first_row(g, member) + band_rows(g, member, band).first;
}

/* --- The products ---------------------------------------------------------------------------- */

/* dest = rows x b[j]. The rows' scales are those from `first` on. */
static int multiply_by(const struct gather *g, size_t j, const weft_matrix *rows,
                       const weft_matrix *row_scales, size_t first, const weft_matrix *dest) {
    if (!g->scales)
        return weft_matmul(rows, &g->b[j], NULL, dest);
    struct weft_scales scales = {row_scales, g->scales->b, g->scales->bias};
    struct weft_scaling scaling =
        weft_scaling_of(&scales, j, &(struct weft_piece){first, rows->rows, 0, dest->cols});
    return weft_matmul(rows, &g->b[j], &scaling, dest);
}

/* c[j], rows from `first` on = rows x b[j] for all j. */
static int multiply_rows(const struct gather *g, const weft_matrix *rows, size_t first) {
    int error = 0;
    for (size_t j = 0; j < g->nb && !error; j++) {
        weft_matrix c = weft_matrix_rows(&g->c[j], first, rows->rows);
        error = multiply_by(g, j, rows, &g->row_scales, first, &c);
    }
    return error;
}

static size_t cols_of_all_b(const struct gather *g) {
    size_t cols = 0;
    for (size_t j = 0; j < g->nb; j++)
        cols += g->b[j].cols;
    return cols;
}

/* Bytes of the products of the own shard and the first j of b. */
static size_t early_bytes(const struct gather *g, size_t j) {
    size_t bytes = 0;
    for (size_t i = 0; i < j; i++)
        bytes += weft_page_up(g->shard->rows * g->c[i].cols * weft_element_bytes(g->c[i].dtype));
    return bytes;
}

/* Where the product of the own shard and b[j] waits until it may be written to c. */
static weft_matrix early_panel(const struct gather *g, size_t j) {
    const weft_matrix *c = &g->c[j];
    return (weft_matrix){own_workspace(g) + g->early_at + early_bytes(g, j), g->shard->rows,
                         c->cols, c->cols, c->dtype};
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
    const double worth = 1e8;
    size_t rows = g->shard->rows, cols = cols_of_all_b(g), bytes = early_bytes(g, g->nb);
    if (g->full || rows < 2 * EARLY_ROWS ||
        2.0 * (double)rows * (double)cols * (double)g->shard->cols < worth || all_arrive_soon(g) ||
        weft_team_workspace_commit(g->meeting.team, g->free_at + bytes))
        return;
    g->early_at = g->free_at;
    g->free_at += bytes;
    int error = 0;
    while (g->early_rows < rows && !error && !weft_meeting_complete(&g->meeting)) {
        size_t left = rows - g->early_rows, now = left < 2 * EARLY_ROWS ? left : EARLY_ROWS;
        weft_matrix part = weft_matrix_rows(g->shard, g->early_rows, now);
        for (size_t j = 0; j < g->nb && !error; j++) {
            weft_matrix panel = early_panel(g, j);
            panel = weft_matrix_rows(&panel, g->early_rows, now);
            error =
                multiply_by(g, j, &part, g->scales ? g->scales->a : NULL, g->early_rows, &panel);
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
    return multiply_rows(g, &rest, first + g->early_rows);
}

/* Whether to gather A first, and where to. Packing b once more for every member costs about as much
 * per byte as copying A; pieces of many rows are large enough not to mind. 8-bit factors are a
 * quarter of what is packed, and b would be widened again, too. */
static void choose_way(struct gather *g) {
    enum { ROWS_ENOUGH = 1024 };
    size_t npes = (size_t)g->meeting.team->npes, rows = first_row(g, (int)npes);
    g->gathers = g->full != NULL;
    if (g->full) {
        g->gathered = *g->full;
        return;
    }
    size_t packed = (npes - 1) * cols_of_all_b(g), copied = g->scales ? rows / 4 : rows;
    if (npes == 1 || (rows / npes >= ROWS_ENOUGH && !g->scales) || packed <= copied)
        return;
    size_t cols = g->shard->cols, bytes = rows * cols * weft_element_bytes(g->shard->dtype);
    if (weft_team_workspace_commit(g->meeting.team, g->free_at + bytes))
        return; /* then in place: slower, but right */
    g->gathered = (weft_matrix){own_workspace(g) + g->free_at, rows, cols, cols, g->shard->dtype};
    g->gathers = true;
}

/* A band of every member's shard, to where A is gathered. */
static int gather_band(const void *call, size_t band) {
    const struct gather *g = call;
    const struct weft_team *team = g->meeting.team;
    for (int distance = 0; distance < team->npes; distance++) {
        int member = weft_team_member_after(team, distance);
        struct weft_shown rows = shard_band(g, member, band);
        weft_matrix dest =
            weft_matrix_rows(&g->gathered, first_of_band(g, member, band), rows.at.rows);
        weft_shown_copy(&dest, &rows, team);
    }
    weft_shown_complete(team);
    return 0;
}

/* The order in which shards are multiplied where they lie: near ones first. */
static void order_members(const struct gather *g, int *order) {
    const struct weft_team *team = g->meeting.team;
    int n = 0;
    for (int far = 0; far <= team->far; far++)
        for (int distance = 0; distance < team->npes; distance++) {
            int member = weft_team_member_after(team, distance);
            if (weft_team_member_is_far(team, member) == far)
                order[n++] = member;
        }
}

/* Room for a band of the largest far shard. */
static int open_landing(struct gather *g) {
    size_t most = 0, row_bytes = g->shard->cols * weft_element_bytes(g->shard->dtype);
    for (int member = 0; member < g->meeting.team->npes; member++) {
        size_t rows = band_rows(g, member, 0).nelems;
        if (weft_team_member_is_far(g->meeting.team, member) && rows > most)
            most = rows;
    }
    return weft_landing_open(&g->landing, g->meeting.team, g->free_at, most * row_bytes);
}

/* A band of every member's shard, where it lies; a far one's while the next one's comes. */
static int multiply_band(const void *call, size_t band) {
    const struct gather *g = call;
    const struct weft_team *team = g->meeting.team;
    int order[team->npes], error = g->landing_error;
    order_members(g, order);
    weft_matrix next = shard_band(g, order[0], band).at;
    for (int turn = 0; turn < team->npes && !g->landing_error; turn++) {
        weft_matrix rows = next;
        if (weft_team_member_is_far(team, order[turn]))
            weft_shown_complete(team);
        if (turn + 1 < team->npes) {
            struct weft_shown shown = shard_band(g, order[turn + 1], band);
            next = weft_landing_bring(&g->landing, turn % 2, &shown, team);
        }
        size_t first = first_of_band(g, order[turn], band);
        int failed = order[turn] == team->my_pe && band == 0 ? multiply_own(g, first)
                                                             : multiply_rows(g, &rows, first);
        error = error ? error : failed;
    }
    return error;
}

/* c = full x b. What is early is used where the rest is as large as that makes the same bits. */
static int multiply_gathered(const struct gather *g) {
    const weft_matrix *full = &g->gathered;
    size_t first = first_row(g, g->meeting.team->my_pe), end = first + g->shard->rows;
    size_t before = first, after = full->rows - end;
    bool apart = g->early_rows > 0 && (before == 0 || before >= EARLY_ROWS) &&
                 (after == 0 || after >= EARLY_ROWS);
    if (!apart)
        return multiply_rows(g, full, 0);
    weft_matrix above = weft_matrix_rows(full, 0, before);
    weft_matrix below = weft_matrix_rows(full, end, after);
    int error = multiply_own(g, first);
    error = error ? error : multiply_rows(g, &above, 0);
    return error ? error : multiply_rows(g, &below, end);
}

/* Each member chooses its way; settling is the same for both, and the last use of the shards. */
static int gather_and_multiply(struct gather *g) {
    struct weft_bands bands = {
        .meeting = &g->meeting, .count = count_shard_bands(g), .stage = stage_shard};
    choose_way(g);
    gather_scales(g);
    bands.take = g->gathers ? gather_band : multiply_band;
    if (!g->gathers)
        g->landing_error = open_landing(g);
    int error = weft_bands_run(&bands, g);
    if (g->gathers && !error)
        error = multiply_gathered(g);
    weft_landing_close(&g->landing);
    return weft_meeting_settle(&g->meeting, error);
}

static int call_gather(struct gather *g) {
    bool right = check_gather(g);
    if (right && g->scales)
        offer_scales(g);
    if (right)
        offer_shard(g);
    weft_meeting_post(&g->meeting);
    if (!weft_meeting_refused(&g->meeting))
        multiply_early(g);
    int error = weft_meeting_agree(&g->meeting);
    if (!error)
        error = check_claims(g);
    if (!error)
        error = gather_and_multiply(g);
    return weft_meeting_close(&g->meeting, error);
}

int weft_all_gather_matmul(shmem_team_t team, const weft_matrix *a_shard, const weft_matrix *b,
                           size_t nb, weft_matrix *c, weft_matrix *a_full, weft_stream stream) {
    WEFT_IN_CALL(__func__);
    struct gather g = {.shard = a_shard, .b = b, .nb = nb, .c = c, .full = a_full};
    int error = weft_meeting_open(&g.meeting, team, WEFT_CALL_ALL_GATHER_MATMUL, stream);
    return error ? error : call_gather(&g);
}

int weft_all_gather_scaled_matmul(shmem_team_t team, const weft_matrix *a_shard,
                                  const weft_matrix *a_scale, const weft_matrix *b,
                                  const weft_matrix *b_scale, size_t nb, const weft_matrix *bias,
                                  weft_matrix *c, weft_matrix *a_full, weft_stream stream) {
    WEFT_IN_CALL(__func__);
    struct weft_scales scales = {a_scale, b_scale, bias};
    struct gather g = {
        .shard = a_shard, .b = b, .nb = nb, .scales = &scales, .c = c, .full = a_full};
    int error = weft_meeting_open(&g.meeting, team, WEFT_CALL_ALL_GATHER_SCALED_MATMUL, stream);
    return error ? error : call_gather(&g);
}
