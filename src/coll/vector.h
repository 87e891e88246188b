/* SPDX-License-Identifier: BSD-3-Clause */
/* The collectives of vectors: all-reduce, reduce-scatter, all-gather, broadcast, all-to-all.
 *
 * Each is a plan (coll/plan.h), whose blocks are copied, or folded where they come to the same
 * place. It comes in two steps around the agreement of a meeting: `offer` makes this member's input
 * readable to the others before it posts, `move` does the rest. Small inputs travel inside the
 * offer; symmetric ones are read where they lie; others go through the workspace a band at a time
 * (coll/band.h), so that it stays small and in the cache.
 * On several hosts larger vectors are moved by the collectives over hosts (coll/hosts_vector.h). A
 * member alone just copies. */
#ifndef WEFT_COLL_VECTOR_H
#define WEFT_COLL_VECTOR_H

#include <weft.h>
#include "coll/meeting.h"
#include "coll/plan.h"

struct weft_vector {
    enum weft_call call;
    void *dest;
    const void *source;
    size_t nelems; /* of a block */
    weft_dtype dtype;
    struct weft_plan plan;
    const weft_op *op; /* what folds blocks, of which dest may be one; NULL: they are copied */
};

/* Offers the input, and a place for results. The arguments have been checked. Returns 0 or -errno
 * with text, for weft_meeting_post. */
int weft_vector_offer(struct weft_meeting *meeting, const struct weft_vector *vector);
void weft_vector_move(struct weft_meeting *meeting, const struct weft_vector *vector);

#endif
