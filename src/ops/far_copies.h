/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies of matrices that the far members of a team offer to this member alone: two sets, so that
 * one can be read while the other arrives. Copies lie in private memory, and arrive while this
 * member computes. */
#ifndef WEFT_OPS_FAR_COPIES_H
#define WEFT_OPS_FAR_COPIES_H

#include "far/prefetch.h"
#include "coll/remote_matrix.h"

struct weft_far_copies {
    const struct weft_team *team;
    size_t bytes;                 /* of the largest copy */
    struct weft_far_copy *copies; /* [set][member]; NULL: no member is far */
    char *rooms;
};

/* Prepares copies of matrices of at most `bytes`; does nothing if no member is far. Ends the job if
 * there is no memory. The caller calls weft_far_copies_close. */
void weft_far_copies_open(struct weft_far_copies *far, const struct weft_team *team, size_t bytes);
void weft_far_copies_close(struct weft_far_copies *far);

/* Begins to fetch the far members' matrices into set 0 or 1, whose old contents are no longer
 * needed. Changes the far entries of `matrices`, which has an entry for each member, to the copies.
 */
void weft_far_copies_fetch(struct weft_far_copies *far, int set,
                           struct weft_remote_matrix *matrices);

/* Returns whether all copies of the set have arrived; or blocks until they have. */
bool weft_far_copies_arrived(struct weft_far_copies *far, int set);
void weft_far_copies_await(struct weft_far_copies *far, int set);

#endif
