/* SPDX-License-Identifier: BSD-3-Clause */
/* Matrices in host memory that members of a team show each other. A near member's matrix is
 * read in place, a far member's is copied here first. */
#ifndef WEFT_COLL_REMOTE_MATRIX_H
#define WEFT_COLL_REMOTE_MATRIX_H

#include <string.h>
#include "coll/elements.h"
#include "coll/place.h"

struct weft_remote_matrix {
    weft_matrix at;          /* `data` is its mapped address; NULL if its member is far */
    struct weft_place place; /* of its first element, if its member is far */
    int pe;                  /* that member's, in WORLD */
};

/* Returns the mapped address of `place` in a member's host memory, or NULL if the member is far. */
static inline const void *weft_remote_matrix_here(struct weft_place place,
                                                  const struct weft_team *team, int member) {
    return weft_team_member_is_far(team, member) ? NULL : weft_place_at(place, team, member);
}

/* Returns the matrix that a member shows at `place`, which must not be private. `shape` has its
 * shape and type; its data is ignored. */
static inline struct weft_remote_matrix weft_remote_matrix_of(const struct weft_team *team,
                                                              int member, struct weft_place place,
                                                              const weft_matrix *shape) {
    struct weft_remote_matrix matrix = {*shape, place, weft_team_world_pe(team, member)};
    matrix.at.data = (void *)weft_remote_matrix_here(place, team, member);
    return matrix;
}

/* Returns the part that begins at (row, col). */
struct weft_remote_matrix weft_remote_matrix_part(const struct weft_remote_matrix *matrix,
                                                  size_t row, size_t rows, size_t col, size_t cols);

/* Copies `matrix` to dest, of the same shape and type, both row-major. Data of far members may be
 * under way on return, until weft_remote_matrix_complete. */
void weft_remote_matrix_copy(const weft_matrix *dest, const struct weft_remote_matrix *matrix,
                             const struct weft_team *team);
void weft_remote_matrix_complete(const struct weft_team *team);

/* Copy `bytes` at `place` of a member in the same way; weft_remote_matrix_pull, of a far member. */
void weft_remote_matrix_pull(void *dest, struct weft_place place, size_t bytes,
                             const struct weft_team *team, int member);
static inline void weft_remote_matrix_take(void *dest, struct weft_place place, size_t bytes,
                                           const struct weft_team *team, int member) {
    const void *source = weft_remote_matrix_here(place, team, member);
    if (!source)
        weft_remote_matrix_pull(dest, place, bytes, team, member);
    else if (source != dest)
        memcpy(dest, source, bytes);
}

#endif
