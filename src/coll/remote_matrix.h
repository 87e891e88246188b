/* SPDX-License-Identifier: BSD-3-Clause */
/* Matrices in memory of the host that the members of a team show to each other. A near member's is
 * read where it lies, a far member's by way of a copy that is pulled here. */
#ifndef WEFT_COLL_REMOTE_MATRIX_H
#define WEFT_COLL_REMOTE_MATRIX_H

#include <string.h>
#include "coll/elements.h"
#include "coll/place.h"

struct weft_remote_matrix {
    weft_matrix at;          /* data is where it lies, mapped here; or NULL: its member is far */
    struct weft_place place; /* of a far member's first element */
    int pe;                  /* of that member, in WORLD */
};

/* What lies at `place` in a member's memory of the host: here mapped, or NULL: the member is far.
 */
static inline const void *weft_remote_matrix_here(struct weft_place place,
                                                  const struct weft_team *team, int member) {
    return weft_team_member_is_far(team, member) ? NULL : weft_place_at(place, team, member);
}

/* What a member shows at `place`, which is not private: a matrix of this shape, whose data is not
 * looked at. */
static inline struct weft_remote_matrix weft_remote_matrix_of(const struct weft_team *team,
                                                              int member, struct weft_place place,
                                                              const weft_matrix *shape) {
    struct weft_remote_matrix matrix = {*shape, place, weft_team_world_pe(team, member)};
    matrix.at.data = (void *)weft_remote_matrix_here(place, team, member);
    return matrix;
}

/* The part of it that begins at (row, col). */
struct weft_remote_matrix weft_remote_matrix_part(const struct weft_remote_matrix *matrix,
                                                  size_t row, size_t rows, size_t col, size_t cols);

/* dest = what is matrix, of the same shape and type. What comes from far members may be under way
 * on return, until weft_remote_matrix_complete. */
void weft_remote_matrix_copy(const weft_matrix *dest, const struct weft_remote_matrix *matrix,
                             const struct weft_team *team);
void weft_remote_matrix_complete(const struct weft_team *team);

/* The same of `bytes` that lie at `place`; the first where the member is far. */
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
