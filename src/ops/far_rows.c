/* SPDX-License-Identifier: BSD-3-Clause */
/* A member announces the contents of its rooms in two words, and the number of parts that it has
 * released in a third. It requests a part as soon as the room is free. There is no deadlock: all
 * parts before the first missing one have arrived, so every member releases them, and the room of
 * the missing part becomes free. */
#include "ops/far_rows.h"
#include "base/size.h"
#include "ops/matmul.h"

size_t weft_far_rows_capacity(void) {
    enum { SHARE = 4 };
    return weft_page_down(weft_team_workspace_capacity() / SHARE);
}

size_t weft_far_rows_room(size_t rows, size_t row_bytes, size_t rows_least) {
    enum { ROOM_BYTES = 8 << 20, ROWS_MIN = 256 };
    size_t most = weft_page_down(weft_far_rows_capacity() / 2);
    size_t part = (rows_least < ROWS_MIN ? rows_least : ROWS_MIN) * row_bytes;
    size_t bytes = weft_page_up(part > ROOM_BYTES ? part : ROOM_BYTES);
    bytes = bytes < most ? bytes : most;
    if (row_bytes > bytes)
        return 0;
    return row_bytes == 0 ? 0 : rows < bytes / row_bytes ? weft_page_up(rows * row_bytes) : bytes;
}

static size_t round_rows(size_t rows) {
    return rows < WEFT_MATMUL_GRAIN ? rows : rows - rows % WEFT_MATMUL_GRAIN;
}

size_t weft_far_rows_step(size_t rows, size_t rows_least) {
    enum { PARTS_MAX = 8 };
    size_t parts = rows / rows_least;
    return parts < 2 ? rows : round_rows(rows / (parts > PARTS_MAX ? PARTS_MAX : parts));
}

size_t weft_far_rows_next(size_t left, size_t step) {
    return left < 2 * step ? left : step;
}

/* --- The order of parts ---------------------------------------------------------------------- */

static size_t row_bytes_of(const weft_matrix *m) {
    return m->cols * weft_element_bytes(m->dtype);
}

/* Returns the number of rows of the part that begins at this row: a step, or the rest if it is less
 * than two steps; but not more than fit into a room. */
static size_t rows_from(const struct weft_far_rows *far, int member, size_t row) {
    const weft_matrix *m = &far->matrices[member].at;
    size_t step = weft_far_rows_step(m->rows, far->rows_least), row_bytes = row_bytes_of(m);
    size_t rows = weft_far_rows_next(m->rows - row, step);
    size_t fit = row_bytes ? far->room_bytes / row_bytes : rows;
    return rows <= fit ? rows : round_rows(fit);
}

/* Returns the member after this one in the order in which far members are visited, or -1 at the
 * end. The order begins after the first near member, so that hosts begin with different members. */
static int far_member_after(const struct weft_far_rows *far, int member) {
    const struct weft_team *team = far->team;
    int first = team->levels->leaders[team->levels->leader];
    for (int next = (member + 1) % team->npes; next != first; next = (next + 1) % team->npes)
        if (far->matrices[next].at.rows > 0 && weft_team_member_is_far(team, next))
            return next;
    return -1;
}

static struct weft_far_part first_part_of(const struct weft_far_rows *far, int member,
                                          uint32_t number) {
    return (struct weft_far_part){member, 0, member < 0 ? 0 : rows_from(far, member, 0), number};
}

static struct weft_far_part part_after(const struct weft_far_rows *far,
                                       const struct weft_far_part *part) {
    size_t row = part->row + part->rows;
    if (row == far->matrices[part->member].at.rows)
        return first_part_of(far, far_member_after(far, part->member), part->number + 1);
    return (struct weft_far_part){part->member, row, rows_from(far, part->member, row),
                                  part->number + 1};
}

/* --- Words ----------------------------------------------------------------------------------- */

static struct weft_team_words *words_of(const struct weft_far_rows *far, int member) {
    return weft_team_words_of(far->team, member);
}

/* Returns whether all near members have released this number of parts. */
static bool all_have_released(const struct weft_far_rows *far, uint32_t parts) {
    const struct weft_team *team = far->team;
    for (int member = 0; member < team->npes; member++)
        if (!weft_team_member_is_far(team, member) &&
            !weft_epoch_reached(atomic_load(&words_of(far, member)->taken), far->begin + parts))
            return false;
    return true;
}

/* Returns the near member that fetches the part with this number. */
static int near_member(const struct weft_far_rows *far, uint32_t number) {
    const struct weft_team *team = far->team;
    int member = 0;
    for (;; member++)
        if (!weft_team_member_is_far(team, member) && number-- == 0)
            return member;
}

/* --- Fetching -------------------------------------------------------------------------------- */

/* Returns which of its fetcher's two rooms a part is in. */
static int room_of(const struct weft_far_rows *far, uint32_t number) {
    return (int)(number / (uint32_t)far->near % 2);
}

static char *room_at(const struct weft_far_rows *far, int member, uint32_t number) {
    char *rooms = (char *)weft_team_workspace_of(far->team, member) + far->rooms_at[member];
    return rooms + (size_t)room_of(far, number) * far->room_bytes;
}

static void fetch_part(struct weft_far_rows *far, const struct weft_far_part *part) {
    const struct weft_remote_matrix *matrix = &far->matrices[part->member];
    int room = room_of(far, part->number);
    struct weft_far_prefetch *prefetch = &far->prefetches[room];
    struct weft_remote_matrix rows =
        weft_remote_matrix_part(matrix, part->row, part->rows, 0, matrix->at.cols);
    weft_matrix lines = rows.at.transposed ? weft_matrix_transpose(&rows.at) : rows.at;
    *prefetch = (struct weft_far_prefetch){
        .pe = matrix->pe,
        .step = (int64_t)(lines.ld * weft_element_bytes(lines.dtype)),
        .row_bytes = row_bytes_of(&lines),
        .rows = lines.rows,
        .dest = room_at(far, far->team->my_pe, part->number),
        .word = &far->team->words->far_rows[room],
        .value = far->begin + part->number + 1,
    };
    weft_far_prefetch_begin(prefetch, weft_place_own(rows.place, far->team));
}

/* Returns the first part from `part` on that this member fetches. */
static struct weft_far_part own_part_from(const struct weft_far_rows *far,
                                          struct weft_far_part part) {
    while (part.member >= 0 && part.number % (uint32_t)far->near != (uint32_t)far->mine)
        part = part_after(far, &part);
    return part;
}

/* Requests all parts whose rooms are free. */
static void fetch_more(struct weft_far_rows *far) {
    uint32_t ahead = 2 * (uint32_t)far->near;
    while (far->fetching.member >= 0) {
        struct weft_far_part part = far->fetching;
        if (part.number >= ahead && !all_have_released(far, part.number - ahead + 1))
            break;
        fetch_part(far, &part);
        far->fetching = own_part_from(far, part_after(far, &part));
    }
    for (int room = 0; room < 2; room++)
        weft_far_prefetch_look(&far->prefetches[room]);
}

static void count_parts(struct weft_far_rows *far) {
    struct weft_far_part part = far->taking;
    while (part.member >= 0)
        part = part_after(far, &part);
    far->team->far_parts += part.number;
}

void weft_far_rows_begin(struct weft_far_rows *far) {
    const struct weft_team *team = far->team;
    far->near = team->levels->near;
    far->mine = 0;
    for (int member = 0; member < team->my_pe; member++)
        far->mine += !weft_team_member_is_far(team, member);
    far->begin = team->far_parts;
    memset(far->prefetches, 0, sizeof far->prefetches);
    int first = team->levels->leaders[team->levels->leader];
    far->taking = first_part_of(far, far_member_after(far, first), 0);
    far->fetching = own_part_from(far, far->taking);
    count_parts(far);
    fetch_more(far);
}

/* --- Taking ---------------------------------------------------------------------------------- */

/* Returns the PE for which this PE waits: the fetcher of the next part, or, if this PE fetches it,
 * the part's owner. */
static int awaited_pe(const struct weft_far_rows *far, int fetcher) {
    int member = fetcher == far->team->my_pe ? far->taking.member : fetcher;
    return weft_team_world_pe(far->team, member);
}

bool weft_far_rows_take(struct weft_far_rows *far, bool wait, struct weft_far_part *part,
                        weft_matrix *rows) {
    if (far->taking.member < 0)
        return false;
    *part = far->taking;
    int fetcher = near_member(far, part->number % (uint32_t)far->near);
    struct weft_word *word = &words_of(far, fetcher)->far_rows[room_of(far, part->number)];
    struct weft_waiter waiter = {.pe = awaited_pe(far, fetcher)};
    uint32_t value = far->begin + part->number + 1;
    fetch_more(far);
    while (!weft_word_reached(word, value)) {
        if (!wait)
            return false;
        weft_waiter_turn(&waiter);
        fetch_more(far);
    }
    weft_waiter_end(&waiter);
    *rows = far->matrices[part->member].at;
    rows->rows = part->rows;
    *rows = weft_matrix_dense(rows, room_at(far, fetcher, part->number));
    return true;
}

void weft_far_rows_release(struct weft_far_rows *far) {
    struct weft_team *team = far->team;
    far->taking = part_after(far, &far->taking);
    atomic_store(&team->words->taken, far->begin + far->taking.number);
    fetch_more(far);
}
