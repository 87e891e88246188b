/* SPDX-License-Identifier: BSD-3-Clause */
/* Pieces are computed in turns: some rows of each peer's piece, then of this member's piece, and so
 * on. A member announces the parts that it has computed in its progress word: in each turn, step k
 * is the part for the k-th member after it. So the owner of a piece computes from the distance the
 * value to wait for. */
#include "ops/partials.h"
#include <errno.h>
#include <string.h>
#include "ops/far_copies.h"
#include "ops/matmul.h"

/* Returns the type in which products are kept and added. */
static weft_dtype sum_dtype(const struct weft_partials *p) {
    return p->a->dtype == WEFT_F64 ? WEFT_F64 : WEFT_F32;
}

int weft_partials_plan(struct weft_partials *p, size_t more) {
    size_t rows = p->a->rows, cols = p->b->cols, element = weft_element_bytes(sum_dtype(p)) + more;
    p->band_cols = cols;
    p->free_at = 0;
    if (p->meeting->team->npes == 1 || rows == 0 || cols == 0)
        return 0;
    size_t most = weft_team_workspace_capacity() / element / rows;
    if (most < cols)
        p->band_cols = most;
    if (most == 0)
        return weft_fail_bare(-ENOMEM, "a column of %zu rows does not fit into a workspace", rows);
    p->free_at = p->band_cols * rows * weft_element_bytes(sum_dtype(p));
    return weft_team_workspace_commit(p->meeting->team, p->band_cols * rows * element);
}

enum { FEW_ELEMENTS = 16 << 10 };

bool weft_partials_at_once(size_t npieces, size_t split, size_t other) {
    enum { ENOUGH = 1024 };
    return split * other <= FEW_ELEMENTS ||
           (split / npieces < ENOUGH && (npieces - 1) * other > split);
}

bool weft_partials_by_rows(const struct weft_partials *p) {
    size_t npes = (size_t)p->meeting->team->npes, rows = p->a->rows;
    return p->meeting->team->far && rows / npes >= p->rows_least &&
           rows * p->b->cols > FEW_ELEMENTS;
}

/* Returns a member's product of the band. */
static struct weft_remote_matrix product_of(const struct weft_partials *p, int member,
                                            size_t cols) {
    weft_matrix shape = {NULL, p->a->rows, cols, cols, sum_dtype(p), false};
    return weft_remote_matrix_of(p->meeting->team, member,
                                 (struct weft_place){WEFT_SPACE_WORKSPACE, 0}, &shape);
}

static weft_matrix own_product(const struct weft_partials *p, size_t cols) {
    return product_of(p, p->meeting->team->my_pe, cols).at;
}

static weft_matrix cut_piece(const weft_matrix *m, const struct weft_piece *piece) {
    return weft_matrix_part(m, piece->row, piece->rows, piece->col, piece->cols);
}

/* Computes dest, a piece of the band that begins at `col`: its rows of a x its columns of b. */
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

int weft_partials_begin(const struct weft_partials *p, bool at_once, enum weft_product *how) {
    *how = at_once ? WEFT_PRODUCT_AT_ONCE : WEFT_PRODUCT_IN_PIECES;
    if (!at_once || p->meeting->team->npes == 1 || p->band_cols < p->b->cols)
        return 0;
    *how = WEFT_PRODUCT_MADE;
    struct weft_piece whole = {0, p->a->rows, 0, p->b->cols};
    weft_matrix product = own_product(p, p->b->cols);
    return multiply_piece(p, 0, &whole, &product);
}

/* One band of a call. */
struct work {
    const struct weft_partials *partials;
    size_t col, cols;
    const struct weft_piece *pieces;
    const weft_matrix *dest; /* for this member's piece of the sum */
    weft_matrix own;         /* this member's product for its piece */
    size_t turns;
    size_t rows;               /* of every piece in a turn; 0: turns have equal parts */
    size_t made, reduced;      /* turns that are complete */
    size_t folded;             /* turns whose sums of this host are announced to far members */
    bool folds;                /* far members receive sums of this host instead of products */
    uint32_t begin;            /* the progress words' value at the start */
    struct weft_factor factor; /* the band's columns of b */

    size_t fetched; /* turns whose far products are requested: at most two more than are reduced */
    struct weft_far_copies far;
    struct weft_remote_matrix
        *sources[2]; /* of two turns, by member: products, or copies of far members' */
};

/* Returns the number of rows of a piece that are computed before a turn. */
static size_t rows_before(const struct work *w, size_t rows, size_t turn) {
    size_t before = w->rows ? turn * w->rows : w->turns ? rows * turn / w->turns : 0;
    if (!w->rows && turn < w->turns && before > WEFT_MATMUL_GRAIN)
        before -= before % WEFT_MATMUL_GRAIN;
    return before < rows ? before : rows;
}

/* Returns the part of a member's piece that is computed in a turn. */
static struct weft_piece part_of(const struct work *w, int member, size_t turn) {
    struct weft_piece part = w->pieces[member];
    size_t before = rows_before(w, part.rows, turn), end = rows_before(w, part.rows, turn + 1);
    part.row += before;
    part.rows = end - before;
    return part;
}

/* Returns the rows of a turn in `whole`, which has the size of this member's piece. */
static weft_matrix own_part(const struct work *w, const weft_matrix *whole, size_t turn) {
    int me = w->partials->meeting->team->my_pe;
    struct weft_piece part = part_of(w, me, turn);
    return weft_matrix_rows(whole, part.row - w->pieces[me].row, part.rows);
}

/* Returns whether an owner reads a member's product for its piece. If hosts fold first (w->folds),
 * the owner reads the product of one member of each other host, which has added up its host's
 * products for this owner; other members add up for other owners. */
static bool gives_source(const struct work *w, int member, int owner) {
    const struct weft_levels *levels = w->partials->meeting->team->levels;
    if (!w->folds || levels->hosts[member] == levels->hosts[owner])
        return true;
    int host = levels->hosts[member],
        rank = levels->places[owner] % weft_levels_count(levels, host);
    return weft_levels_rank(levels, member) == rank;
}

/* Finds the members' products for a turn's part of this member's piece; begins to fetch far
 * products. */
static void fetch_turn(struct work *w, size_t turn) {
    const struct weft_team *team = w->partials->meeting->team;
    struct weft_piece part = part_of(w, team->my_pe, turn);
    struct weft_remote_matrix *sources = w->sources[turn % 2];
    for (int member = 0; member < team->npes; member++) {
        struct weft_remote_matrix product = product_of(w->partials, member, w->cols);
        sources[member] =
            weft_remote_matrix_part(&product, part.row, part.rows, part.col, part.cols);
    }
    for (int member = 0; member < team->npes; member++)
        if (!gives_source(w, member, team->my_pe))
            sources[member].at.rows = 0;
    sources[team->my_pe].at = own_part(w, &w->own, turn);
    weft_far_copies_fetch(&w->far, (int)(turn % 2), sources);
}

/* Reduces a turn's part of this member's piece over the members in team order. All products are
 * here. */
static void reduce_turn(const struct work *w, size_t turn) {
    const struct weft_team *team = w->partials->meeting->team;
    weft_matrix dest = own_part(w, w->dest, turn), sources[team->npes];
    int nsources = 0;
    for (int member = 0; member < team->npes; member++)
        if (gives_source(w, member, team->my_pe))
            sources[nsources++] = w->sources[turn % 2][member].at;
    weft_elements_reduce_sums(&dest, sources, nsources, w->partials->op, team->npes);
}

/* Reduces the turns of a product that all members have computed completely. */
static void reduce_rest(struct work *w) {
    for (; w->reduced < w->turns; w->reduced++) {
        for (; w->fetched < w->turns && w->fetched < w->reduced + 2; w->fetched++)
            fetch_turn(w, w->fetched);
        weft_far_copies_await(&w->far, (int)(w->reduced % 2));
        reduce_turn(w, w->reduced);
    }
}

/* Computes the whole band in one product. */
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

/* Returns the rows of a turn, so few that a product is still in the second-level cache when it is
 * reduced; 0 if turns would cost more than that saves: if b does not stay in the cache between
 * turns, or is not the same for all pieces, and for types of 8 and 16 bits, whose products are too
 * fast. The result is the same on all members, because bits may depend on it. */
static size_t rows_of_turn(const struct work *w, size_t cols) {
    enum { B_BYTES = 3 << 19, PRODUCT_BYTES = 9 << 16, ROWS_MIN = 64, ROWS_STEP = 32 };
    size_t row_bytes = cols * weft_element_bytes(w->own.dtype);
    if (row_bytes == 0 || cols < w->cols || w->partials->b->dtype != w->own.dtype ||
        weft_partials_deepest(w->partials->meeting) * row_bytes > B_BYTES)
        return 0;
    size_t rows = PRODUCT_BYTES / row_bytes / ROWS_STEP * ROWS_STEP;
    return rows > ROWS_MIN ? rows : ROWS_MIN;
}

/* Returns the number of turns if members are far: enough that the transfers of a turn are hidden by
 * the products of the next, except for the last turn; but each product has enough rows for the bits
 * of a whole piece. */
static size_t even_turns(const struct work *w) {
    const struct weft_meeting *meeting = w->partials->meeting;
    enum { TURNS_MAX = 8 };
    size_t turns = TURNS_MAX, least = w->partials->rows_least;
    least += least < SIZE_MAX ? WEFT_MATMUL_GRAIN : 0; /* turns end at multiples of the grain */
    for (int member = 0; member < meeting->team->npes; member++) {
        size_t rows = w->pieces[member].rows;
        if (rows > 0 && rows / least < turns)
            turns = rows / least;
    }
    return turns > 1 ? turns : 1;
}

static void plan_turns(struct work *w) {
    struct weft_team *team = w->partials->meeting->team;
    size_t rows = 0, cols = 0;
    for (int member = 0; member < team->npes; member++) {
        rows = w->pieces[member].rows > rows ? w->pieces[member].rows : rows;
        cols = w->pieces[member].cols > cols ? w->pieces[member].cols : cols;
    }
    w->rows = rows_of_turn(w, cols);
    if (!w->rows && !team->far)
        w->rows = rows;
    w->turns = rows == 0 ? 0 : w->rows ? (rows + w->rows - 1) / w->rows : even_turns(w);
    w->begin = weft_progress_begin(team, (uint32_t)w->turns * (uint32_t)(team->npes - 1));
    weft_matrix b = weft_matrix_cols(w->partials->b, w->col, w->cols);
    if (w->turns > 1 && w->rows)
        w->factor = weft_matmul_pack(w->partials->a, &b, w->rows);
}

/* Returns the step of this member's part of a turn for the member `distance` after it. */
static uint32_t step_of(const struct work *w, size_t turn, int distance) {
    uint32_t steps = (uint32_t)w->partials->meeting->team->npes - 1;
    return w->begin + (uint32_t)turn * steps + (uint32_t)distance;
}

/* Returns the step of a peer's part for this member, whose distance from the peer is the rest of a
 * round. */
static uint32_t step_of_peer(const struct work *w, size_t turn, int distance) {
    return step_of(w, turn, w->partials->meeting->team->npes - distance);
}

/* Returns a peer's progress at which its part of a turn for this member is computed, or folded. */
static uint32_t step_awaited(const struct work *w, size_t turn, int distance, bool far) {
    return far && w->folds ? w->begin + (uint32_t)turn + 1 : step_of_peer(w, turn, distance);
}

/* Returns whether all far, or all near, peers have computed their parts of a turn. */
static bool peers_have_made(const struct work *w, size_t turn, bool far) {
    struct weft_team *team = w->partials->meeting->team;
    for (int distance = 1; distance < team->npes; distance++) {
        int member = weft_team_member_after(team, distance);
        if (weft_team_member_is_far(team, member) == far && gives_source(w, member, team->my_pe) &&
            !weft_progress_reached(team, member, step_awaited(w, turn, distance, far)))
            return false;
    }
    return true;
}

static void await_peers(const struct work *w, size_t turn) {
    struct weft_team *team = w->partials->meeting->team;
    for (int distance = 1; distance < team->npes; distance++) {
        int member = weft_team_member_after(team, distance);
        bool far = weft_team_member_is_far(team, member);
        if (gives_source(w, member, team->my_pe))
            weft_progress_wait(team, member, step_awaited(w, turn, distance, far));
    }
}

/* --- Sums of a host, with WEFT_BITS=any ------------------------------------------------------- */

/* Returns whether all near members have computed a whole turn; with `wait`, blocks until they have.
 */
static bool near_have_made(const struct work *w, size_t turn, bool wait) {
    struct weft_team *team = w->partials->meeting->team;
    for (int distance = 1; distance < team->npes; distance++) {
        int member = weft_team_member_after(team, distance);
        uint32_t step = step_of(w, turn, team->npes - 1);
        if (weft_team_member_is_far(team, member))
            continue;
        if (wait)
            weft_progress_wait(team, member, step);
        else if (!weft_progress_reached(team, member, step))
            return false;
    }
    return true;
}

/* Adds the near members' parts of a turn for a far owner into this member's part. */
static void fold_part(const struct work *w, size_t turn, int owner) {
    const struct weft_team *team = w->partials->meeting->team;
    const struct weft_levels *levels = team->levels;
    struct weft_piece part = part_of(w, owner, turn);
    weft_matrix sources[levels->near], dest;
    for (int i = 0; i < levels->near; i++) {
        int member = levels->members[levels->begins[levels->leader] + i];
        weft_matrix product = product_of(w->partials, member, w->cols).at;
        sources[i] = cut_piece(&product, &part);
        if (member == team->my_pe)
            dest = sources[i];
    }
    weft_elements_reduce(&dest, sources, levels->near, WEFT_SUM);
}

static void fold_turns(struct work *w, bool wait) {
    struct weft_team *team = w->partials->meeting->team;
    while (w->folds && w->folded < w->made && near_have_made(w, w->folded, wait)) {
        for (int owner = 0; owner < team->npes; owner++)
            if (weft_team_member_is_far(team, owner) && gives_source(w, team->my_pe, owner))
                fold_part(w, w->folded, owner);
        weft_progress_set_far(team, w->begin + (uint32_t)++w->folded);
    }
}

/* Uses the packed b if there is one. */
static int multiply_part(const struct work *w, const struct weft_piece *part,
                         const weft_matrix *dest) {
    if (!w->factor.packed)
        return multiply_piece(w->partials, w->col, part, dest);
    weft_matrix a = weft_matrix_rows(w->partials->a, part->row, part->rows);
    return weft_matmul_by(&a, &w->factor, dest);
}

/* Requests the far products that are complete, and reduces the turns whose products are all here.
 */
static void reduce_ready(struct work *w) {
    for (;;) {
        while (w->fetched < w->turns && w->fetched < w->reduced + 2 &&
               peers_have_made(w, w->fetched, true))
            fetch_turn(w, w->fetched++);
        if (w->reduced == w->made || w->reduced == w->fetched ||
            !peers_have_made(w, w->reduced, false) ||
            !weft_far_copies_arrived(&w->far, (int)(w->reduced % 2)))
            return;
        reduce_turn(w, w->reduced++);
    }
}

/* A part that fails counts as computed, so that no member waits for it forever. */
static int multiply_turn(struct work *w, size_t turn) {
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
            (w->folds ? weft_progress_set_near : weft_progress_set)(meeting->team,
                                                                    step_of(w, turn, distance));
        if (member != me && meeting->team->far)
            reduce_ready(w);
    }
    return error;
}

/* Reduces a turn that all peers have computed while this member's product is in the cache. A member
 * that is ahead of the others continues, and reduces the remaining turns at the end. */
static int take_turns(struct work *w) {
    int error = 0;
    for (size_t turn = 0; turn < w->turns; turn++) {
        int failed = multiply_turn(w, turn);
        error = error ? error : failed;
        w->made = turn + 1;
        fold_turns(w, false);
        reduce_ready(w);
    }
    fold_turns(w, true);
    while (w->reduced < w->turns) {
        await_peers(w, w->reduced);
        reduce_ready(w);
        weft_far_copies_await(&w->far, (int)(w->reduced % 2));
        reduce_ready(w);
    }
    return error;
}

/* Returns the bytes of the largest part of this member's piece. */
static size_t largest_part(const struct work *w) {
    size_t most = 0;
    for (size_t turn = 0; turn < w->turns; turn++) {
        struct weft_piece part = part_of(w, w->partials->meeting->team->my_pe, turn);
        size_t bytes = part.rows * part.cols * weft_element_bytes(w->own.dtype);
        most = bytes > most ? bytes : most;
    }
    return most;
}

/* A band whose product is computed in one piece is reduced in parts if some members are far. */
static void plan_rest(struct work *w) {
    enum { PARTS = 8, ROWS_LEAST = 16 };
    const struct weft_team *team = w->partials->meeting->team;
    size_t rows = w->pieces[team->my_pe].rows, parts = team->far ? rows / ROWS_LEAST : 1;
    w->turns = parts < 1 ? 1 : parts > PARTS ? PARTS : parts;
}

static int run_work(struct work *w, enum weft_product how) {
    const struct weft_team *team = w->partials->meeting->team;
    int error = 0;
    if (how == WEFT_PRODUCT_IN_PIECES) {
        w->own = w->dest->dtype == w->own.dtype ? *w->dest : w->own;
        w->folds = team->far && weft_partials_any_bits(w->partials->meeting);
        plan_turns(w);
    } else {
        error = how == WEFT_PRODUCT_AT_ONCE ? multiply_at_once(w) : 0;
        plan_rest(w);
    }
    weft_far_copies_open(&w->far, team, team->far ? largest_part(w) : 0);
    if (how == WEFT_PRODUCT_IN_PIECES)
        error = take_turns(w);
    else
        reduce_rest(w);
    weft_far_copies_close(&w->far);
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
                        .own = cut_piece(&product, &pieces[team->my_pe])};
    struct weft_remote_matrix sources[2 * team->npes];
    work.sources[0] = sources;
    work.sources[1] = sources + team->npes;
    return run_work(&work, how);
}
