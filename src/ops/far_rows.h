/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows of matrices that the far members of a team offer, fetched by its near members together: each
 * part is sent to a host once, while the members compute.
 *
 *     parts, in the order of all near members:      | 0 | 1 | 2 | 3 | 4 | 5 | ...
 *     fetched by near member, of two:                 0   1   0   1   0   1
 *     into its room:                                  0   0   1   1   0   0
 *
 * A part is some rows of one far member's matrix, with its orientation. Each near member has two
 * adjacent rooms in its workspace, in which the others read its parts. A room is reused when all
 * near members have taken its part. All near members take the parts in the same order, and compute
 * their layout from numbers that all know. */
#ifndef WEFT_OPS_FAR_ROWS_H
#define WEFT_OPS_FAR_ROWS_H

#include "far/prefetch.h"
#include "coll/remote_matrix.h"

/* Some rows of a member's matrix. */
struct weft_far_part {
    int member; /* -1: no part */
    size_t row, rows;
    uint32_t number;
};

struct weft_far_rows {
    struct weft_team *team;
    const struct weft_remote_matrix *matrices; /* by member; used for far members */
    size_t rows_least;      /* of a part, unless its matrix or a room has fewer */
    const size_t *rooms_at; /* by member; for near members: the rooms' offset in the workspace */
    size_t room_bytes;
    int near, mine;                        /* the number of near members; this member's */
    uint32_t begin;                        /* the words' value at the start */
    struct weft_far_part taking, fetching; /* the next part to take; to fetch */
    struct weft_far_prefetch prefetches[2];
};

/* Returns the largest number of bytes of a workspace that the two rooms take. */
size_t weft_far_rows_capacity(void);

/* Returns the bytes of a room for parts of matrices of at most `rows` rows of row_bytes each, the
 * same on all members; 0 if a row is too long. */
size_t weft_far_rows_room(size_t rows, size_t row_bytes, size_t rows_least);

/* Returns the step in which a matrix of `rows` rows is cut into a few parts of about equal size, of
 * at least rows_least rows; and the rows of the next part if `left` rows are left. */
size_t weft_far_rows_step(size_t rows, size_t rows_least);
size_t weft_far_rows_next(size_t left, size_t step);

/* Begins to fetch. The caller has set team, matrices, rows_least, rooms_at and room_bytes. */
void weft_far_rows_begin(struct weft_far_rows *far);

/* Takes the next part: returns true, and in *rows the part as a matrix in this PE's memory. Returns
 * false if the part has not arrived; with `wait`, blocks until it has, and returns false after the
 * last part. The caller calls weft_far_rows_release before it takes the next part. */
bool weft_far_rows_take(struct weft_far_rows *far, bool wait, struct weft_far_part *part,
                        weft_matrix *rows);
void weft_far_rows_release(struct weft_far_rows *far);

#endif
