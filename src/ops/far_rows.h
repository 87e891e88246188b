/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows of what far members of a team show, which its near members bring here together: each part
 * comes once for all of a host, while they compute.
 *
 *     far rows, as all near members count them:   | 0 | 1 | 2 | 3 | 4 | 5 | ...
 *     brought by near member, of two:               0   1   0   1   0   1
 *     into its room                                 0   0   1   1   0   0
 *
 * A part is some rows of one far member. Each near member has two rooms in its workspace, one
 * behind the other; the others read its parts there. A room is used anew when all of them have
 * taken what was in it. Parts are taken in their order, by all near members alike; how they lie
 * follows from what all know. */
#ifndef WEFT_OPS_FAR_ROWS_H
#define WEFT_OPS_FAR_ROWS_H

#include "far/prefetch.h"
#include "coll/remote_matrix.h"

/* Some rows of a member's matrix. */
struct weft_far_part {
    int member; /* -1: there is none */
    size_t row, rows;
    uint32_t number;
};

struct weft_far_rows {
    struct weft_team *team;
    const struct weft_remote_matrix *shown; /* by member; of far ones */
    size_t rows_least;                      /* of a part, unless its matrix has fewer */
    const size_t *rooms_at; /* by member; of near ones: where their workspaces have rooms */
    size_t room_bytes;
    int near, mine; /* how many near members there are, and the number of this one */
    uint32_t begin; /* of the words */
    struct weft_far_part taking, bringing; /* the next part; the next one that this member brings */
    struct weft_far_prefetch bring[2];
};

/* Bytes of a workspace that two rooms take at most. */
size_t weft_far_rows_capacity(void);

/* Bytes of a room for parts of a matrix of so many rows, of row_bytes each, at most: the same on
 * all members. 0: a row is too long. */
size_t weft_far_rows_room(size_t rows, size_t row_bytes, size_t rows_least);

/* How a matrix of so many rows is cut: into a few parts that are about even, of rows_least and
 * more; and how many rows come next if so many are left. */
size_t weft_far_rows_step(size_t rows, size_t rows_least);
size_t weft_far_rows_next(size_t left, size_t step);

/* With team, shown, rows_least, rooms_at and room_bytes set: begins to bring. */
void weft_far_rows_begin(struct weft_far_rows *far);

/* The next part, as a matrix that lies here: true; false: it has not come, or with `wait`, there is
 * none any more. What it gives is to be let go before the next is taken. */
bool weft_far_rows_take(struct weft_far_rows *far, bool wait, struct weft_far_part *part,
                        weft_matrix *rows);
void weft_far_rows_let_go(struct weft_far_rows *far);

#endif
