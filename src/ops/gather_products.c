/* SPDX-License-Identifier: BSD-3-Clause */
/* Each shard is multiplied in its owner's memory, without a copy: this member's shard first, then
 * the next near member's, and so on. But each product packs b again inside the library. If that
 * costs more than copying A (few rows, wide b), or the caller wants a_full, A is gathered first and
 * multiplied in one product.
 *
 * Shards of far members arrive in parts while near shards are multiplied in pieces: a part that has
 * arrived is multiplied before the next piece of a near shard, to free its room. Only the transfer
 * of the last part is not hidden. If parts are large enough on all members, each is multiplied on
 * arrival; otherwise the choice is that of one host. A is also gathered first if a shard
 * arrives in parts whose products would have other bits than the product of the whole. */
#include <sched.h>
#include <stdint.h>
#include "base/clock.h"
#include "base/size.h"
#include "ops/far_rows.h"
#include "ops/gather.h"
#include "ops/matmul.h"

enum { EARLY_ROWS = 256 };

/* Computes dest = rows x b[j]. The scales of the rows begin at row `first` of row_scales. */
static int multiply_by(const struct weft_gather *g, size_t j, const weft_matrix *rows,
                       const weft_matrix *row_scales, size_t first, const weft_matrix *dest) {
    if (!g->scales)
        return weft_matmul(rows, &g->b[j], NULL, dest);
    struct weft_scales scales = {row_scales, g->scales->b, g->scales->bias};
    struct weft_scaling scaling =
        weft_scaling_of(&scales, j, &(struct weft_piece){first, rows->rows, 0, dest->cols});
    return weft_matmul(rows, &g->b[j], &scaling, dest);
}

/* Computes rows x b[j] for all j, and stores it in the rows of c[j] from `first` on. */
static int multiply_rows(const struct weft_gather *g, const weft_matrix *rows, size_t first) {
    int error = 0;
    for (size_t j = 0; j < g->nb && !error; j++) {
        weft_matrix c = weft_matrix_rows(&g->c[j], first, rows->rows);
        error = multiply_by(g, j, rows, &g->row_scales, first, &c);
    }
    return error;
}

static size_t cols_of_all_b(const struct weft_gather *g) {
    size_t cols = 0;
    for (size_t j = 0; j < g->nb; j++)
        cols += g->b[j].cols;
    return cols;
}

/* Returns the bytes of the products of this member's shard and the first j matrices b. */
static size_t early_bytes(const struct weft_gather *g, size_t j) {
    size_t bytes = 0;
    for (size_t i = 0; i < j; i++)
        bytes += weft_page_up(g->shard->rows * g->c[i].cols * weft_element_bytes(g->c[i].dtype));
    return bytes;
}

/* Returns the memory of the early product of this member's shard and b[j], which is copied to c
 * later. */
static weft_matrix early_panel(const struct weft_gather *g, size_t j) {
    weft_matrix product = weft_matrix_rows(&g->c[j], 0, g->shard->rows);
    return weft_matrix_dense(&product, weft_gather_workspace(g) + g->early_at + early_bytes(g, j));
}

static bool all_arrive_soon(const struct weft_gather *g) {
    enum { PATIENCE_NS = 100 * 1000 };
    uint64_t begin = weft_clock_ns();
    do {
        if (weft_meeting_complete(&g->meeting))
            return true;
        sched_yield();
    } while (weft_clock_ns() - begin < PATIENCE_NS);
    return false;
}

/* Returns whether packing b for each shard costs more than copying A, which has `rows` rows.
 * Packing costs about as much per byte as copying; for pieces of many rows its share is small.
 * 8-bit factors have a quarter of the bytes that are packed, and b would also be widened again. */
static bool packing_costs_more(const struct weft_gather *g, size_t rows) {
    enum { ROWS_ENOUGH = 1024 };
    size_t npes = (size_t)g->meeting.team->npes;
    size_t packed = (npes - 1) * cols_of_all_b(g), copied = g->scales ? rows / 4 : rows;
    return npes > 1 && (rows / npes < ROWS_ENOUGH || g->scales) && packed > copied;
}

/* Returns the number of rows of this member's shard that are multiplied at a time while peers are
 * missing: at least as many as give the bits of one product (oneDNN: 256, measured), or all rows.
 * Returns 0 if A will probably be gathered, which would make early products useless. */
static size_t early_step(const struct weft_gather *g) {
    size_t rows = g->shard->rows, npes = (size_t)g->meeting.team->npes;
    if (g->rows_least < SIZE_MAX)
        return EARLY_ROWS;
    return packing_costs_more(g, rows * npes) ? 0 : rows;
}

/* Multiplies into the workspace, because outputs must not be written before the members have agreed
 * on their arguments. Only products that take a millisecond or more are computed early. */
void weft_gather_early(struct weft_gather *g) {
    const double worth = 1e8;
    size_t rows = g->shard->rows, cols = cols_of_all_b(g), bytes = early_bytes(g, g->nb);
    size_t step = early_step(g);
    if (g->full || step == 0 || rows < 2 * EARLY_ROWS ||
        2.0 * (double)rows * (double)cols * (double)g->shard->cols < worth || all_arrive_soon(g) ||
        weft_team_workspace_commit(g->meeting.team, g->free_at + bytes))
        return;
    g->early_at = g->free_at;
    g->free_at += bytes;
    int error = 0;
    while (g->early_rows < rows && !error && !weft_meeting_complete(&g->meeting)) {
        size_t left = rows - g->early_rows, now = left < 2 * step ? left : step;
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

/* Copies the early products of this member's shard to c. Returns their number of rows. */
static size_t take_early(const struct weft_gather *g, size_t first) {
    for (size_t j = 0; j < g->nb && g->early_rows > 0; j++) {
        weft_matrix panel = early_panel(g, j), c = weft_matrix_rows(&g->c[j], first, g->early_rows);
        panel = weft_matrix_rows(&panel, 0, g->early_rows);
        weft_elements_copy(&c, &panel);
    }
    return g->early_rows;
}

/* --- The choice ------------------------------------------------------------------------------ */

/* Returns whether all shards can be multiplied separately with the bits of one product. */
static bool shards_are_large(const struct weft_gather *g) {
    for (int member = 0; member < g->meeting.team->npes; member++) {
        size_t rows = weft_gather_rows(g, member);
        if (rows > 0 && rows < g->rows_least)
            return false;
    }
    return true;
}

static size_t largest_shard(const struct weft_gather *g) {
    return weft_meeting_largest(&g->meeting, offsetof(struct weft_offer, facts[WEFT_GATHER_ROWS]));
}

static size_t row_bytes_of_shards(const struct weft_gather *g) {
    return g->shard->cols * weft_element_bytes(g->shard->dtype);
}

static size_t room_bytes(const struct weft_gather *g) {
    return weft_far_rows_room(largest_shard(g), row_bytes_of_shards(g), g->rows_least);
}

/* Returns whether a far shard arrives in parts, because it is larger than a room, although its
 * product must not be cut. */
static bool whole_shards_arrive_cut(const struct weft_gather *g) {
    const struct weft_team *team = g->meeting.team;
    size_t room = team->far && g->rows_least == SIZE_MAX ? room_bytes(g) : SIZE_MAX;
    for (int member = 0; member < team->npes; member++)
        if (weft_team_member_is_far(team, member) &&
            weft_gather_rows(g, member) * row_bytes_of_shards(g) > room)
            return true;
    return false;
}

/* In a team with far members large shards are multiplied on arrival: b is packed faster than A
 * arrives.
 */
void weft_gather_choose(struct weft_gather *g) {
    const struct weft_team *team = g->meeting.team;
    size_t rows = weft_gather_first(g, team->npes), cols = g->shard->cols;
    g->gathers = (g->full || packing_costs_more(g, rows)) && !(team->far && shards_are_large(g));
    g->by_shards = !g->gathers && whole_shards_arrive_cut(g);
    g->gathers = g->gathers || g->by_shards;
    if (g->full)
        g->gathered = *g->full;
    if (g->full || !g->gathers)
        return;
    size_t bytes = rows * cols * weft_element_bytes(g->shard->dtype);
    g->gathers = weft_team_workspace_commit(g->meeting.team, g->free_at + bytes) == 0;
    if (g->gathers) /* if there is no memory: in place, slower but correct */
        g->gathered = (weft_matrix){
            weft_gather_workspace(g) + g->free_at, rows, cols, cols, g->shard->dtype, false};
}

/* Returns the place of a member's shard in the gathered A. */
static weft_matrix gathered_shard(const struct weft_gather *g, int member) {
    weft_matrix shard =
        weft_matrix_rows(&g->gathered, weft_gather_first(g, member), weft_gather_rows(g, member));
    if (!g->by_shards)
        return shard;
    shard.transposed = weft_gather_is_transposed(g, member);
    return weft_matrix_dense(&shard, shard.data);
}

/* Takes a member's rows from row `first` of A on: copies them if A is gathered or a_full is wanted,
 * and multiplies them unless A is gathered first. */
static int take_rows(const struct weft_gather *g, int member, const weft_matrix *rows,
                     size_t first) {
    if (g->gathered.data) {
        weft_matrix shard = gathered_shard(g, member);
        weft_matrix dest =
            weft_matrix_rows(&shard, first - weft_gather_first(g, member), rows->rows);
        weft_elements_copy(&dest, rows);
    }
    return g->gathers ? 0 : multiply_rows(g, rows, first);
}

/* --- Bands ----------------------------------------------------------------------------------- */

/* Takes the parts of far shards that have arrived; with `wait`, blocks for all that are left. */
static int take_far(const struct weft_gather *g, size_t band, struct weft_far_rows *far,
                    bool wait) {
    struct weft_far_part part;
    weft_matrix rows;
    int error = 0;
    while (weft_far_rows_take(far, wait, &part, &rows)) {
        size_t first = weft_gather_first_of_band(g, part.member, band) + part.row;
        int failed = take_rows(g, part.member, &rows, first);
        error = error ? error : failed;
        weft_far_rows_release(far);
    }
    return error;
}

/* Takes a near member's band in one piece; if some members are far, in several, with parts of far
 * shards between them. */
static int take_near(const struct weft_gather *g, int member, size_t band,
                     struct weft_far_rows *far) {
    bool early = member == g->meeting.team->my_pe && band == 0 && !g->gathers;
    weft_matrix rows = weft_gather_band(g, member, band).at;
    size_t first = weft_gather_first_of_band(g, member, band);
    size_t row = early ? take_early(g, first) : 0, left = rows.rows - row;
    size_t step = far ? weft_far_rows_step(left, g->rows_least) : left;
    int error = 0;
    for (size_t next; left > 0; row += next, left -= next) {
        next = weft_far_rows_next(left, step);
        weft_matrix piece = weft_matrix_rows(&rows, row, next);
        int failed = take_rows(g, member, &piece, first + row);
        int far_failed = far ? take_far(g, band, far, false) : 0;
        error = error ? error : failed ? failed : far_failed;
    }
    return error;
}

static int take_all_near(const struct weft_gather *g, size_t band, struct weft_far_rows *far) {
    const struct weft_team *team = g->meeting.team;
    int error = 0;
    for (int distance = 0; distance < team->npes; distance++) {
        int member = weft_team_member_after(team, distance), failed = 0;
        if (!weft_team_member_is_far(team, member))
            failed = take_near(g, member, band, far);
        error = error ? error : failed;
    }
    return error;
}

int weft_gather_take(const void *call, size_t band) {
    const struct weft_gather *g = call;
    struct weft_team *team = g->meeting.team;
    if (!team->far)
        return take_all_near(g, band, NULL);
    struct weft_remote_matrix matrices[team->npes];
    size_t rooms_at[team->npes], least = g->rows_least;
    for (int member = 0; member < team->npes; member++) {
        matrices[member] = weft_gather_band(g, member, band);
        rooms_at[member] = weft_meeting_offer(&g->meeting, member)->output.offset;
    }
    struct weft_far_rows far = {.team = team,
                                .matrices = matrices,
                                .rows_least = least,
                                .rooms_at = rooms_at,
                                .room_bytes = room_bytes(g)};
    weft_far_rows_begin(&far);
    int error = take_all_near(g, band, &far), failed = take_far(g, band, &far, true);
    return error ? error : failed;
}

/* Multiplies each gathered shard separately. */
static int multiply_shards(const struct weft_gather *g) {
    const struct weft_team *team = g->meeting.team;
    int error = 0;
    for (int distance = 0; distance < team->npes && !error; distance++) {
        int member = weft_team_member_after(team, distance);
        size_t first = weft_gather_first(g, member);
        size_t early = member == team->my_pe ? take_early(g, first) : 0;
        weft_matrix shard = gathered_shard(g, member);
        weft_matrix rest = weft_matrix_rows(&shard, early, shard.rows - early);
        error = multiply_rows(g, &rest, first + early);
    }
    return error;
}

/* Computes c = full x b. Early products are used if the remaining rows are enough for the same
 * bits. */
int weft_gather_finish(const struct weft_gather *g) {
    if (g->by_shards)
        return multiply_shards(g);
    const weft_matrix *full = &g->gathered;
    size_t first = weft_gather_first(g, g->meeting.team->my_pe), end = first + g->shard->rows;
    size_t before = first, after = full->rows - end;
    bool apart = g->early_rows > 0 && g->rows_least < SIZE_MAX &&
                 (before == 0 || before >= EARLY_ROWS) && (after == 0 || after >= EARLY_ROWS);
    if (!apart)
        return multiply_rows(g, full, 0);
    weft_matrix above = weft_matrix_rows(full, 0, before);
    weft_matrix below = weft_matrix_rows(full, end, after);
    size_t early = take_early(g, first);
    weft_matrix rest = weft_matrix_rows(g->shard, early, g->shard->rows - early);
    int error = multiply_rows(g, &rest, first + early);
    error = error ? error : multiply_rows(g, &above, 0);
    return error ? error : multiply_rows(g, &below, end);
}
