/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies of what the far members of a team show to this one alone: two sets of them, so that one is
 * read while the other comes. They lie in private memory, and come while this member computes. */
#ifndef WEFT_OPS_FAR_COPIES_H
#define WEFT_OPS_FAR_COPIES_H

#include "far/prefetch.h"
#include "coll/remote_matrix.h"

struct weft_far_copies {
    const struct weft_team *team;
    size_t bytes;                 /* of a copy at most */
    struct weft_far_copy *copies; /* by member, and by set before that; NULL: no member is far */
    char *rooms;
};

/* For matrices of so many bytes. A team without far members has none. Ends the job where there is
 * no memory. */
void weft_far_copies_open(struct weft_far_copies *far, const struct weft_team *team, size_t bytes);
void weft_far_copies_close(struct weft_far_copies *far);

/* Begins to bring set 0 or 1: what far members show, by member, which the set of before is not read
 * any more for. From here on `shown` says where their copies are to be. */
void weft_far_copies_bring(struct weft_far_copies *far, int set, struct weft_remote_matrix *shown);

/* Whether all of the set is here; and the same with waiting. */
bool weft_far_copies_here(struct weft_far_copies *far, int set);
void weft_far_copies_await(struct weft_far_copies *far, int set);

#endif
