/* SPDX-License-Identifier: BSD-3-Clause */
/* The collectives of vectors: all-reduce, reduce-scatter, all-gather, broadcast, all-to-all.
 *
 * Each comes in two steps around the agreement of a meeting: `offer` makes this member's input
 * readable to the others before it posts, the other step moves the data afterwards. Small inputs
 * travel inside the offer; symmetric ones are read where they lie; others go through the workspace
 * a band at a time, so that it stays small and in the cache. A member alone just copies. */
#ifndef WEFT_COLL_VECTOR_H
#define WEFT_COLL_VECTOR_H

#include <weft.h>
#include "coll/meeting.h"

/* nelems is the number of elements of one part: of the whole vector for all-reduce and broadcast,
 * of what one member gets or gives for the others. op is used where something is reduced. */
struct weft_vector {
    void *dest;
    const void *source;
    size_t nelems;
    weft_dtype dtype;
    weft_op op;
};

/* All members' dest[i] = op over the members' source[i]. dest may be source. */
void weft_all_reduce_offer(struct weft_meeting *meeting, const struct weft_vector *vector);
void weft_all_reduce_move(struct weft_meeting *meeting, const struct weft_vector *vector);

/* dest[i] = op over the members' source[me * nelems + i]. dest may be this part of source. */
void weft_reduce_scatter_offer(struct weft_meeting *meeting, const struct weft_vector *vector);
void weft_reduce_scatter_move(struct weft_meeting *meeting, const struct weft_vector *vector);

/* dest[r * nelems + i] = source[i] of member r. source may be this member's part of dest. */
void weft_all_gather_offer(struct weft_meeting *meeting, const struct weft_vector *vector);
void weft_all_gather_move(struct weft_meeting *meeting, const struct weft_vector *vector);

/* All members' dest[i] = source[i] of the root, which may be its dest. */
void weft_broadcast_offer(struct weft_meeting *meeting, const struct weft_vector *vector, int root);
void weft_broadcast_move(struct weft_meeting *meeting, const struct weft_vector *vector, int root);

/* dest[r * nelems + i] = source[me * nelems + i] of member r. */
void weft_all_to_all_offer(struct weft_meeting *meeting, const struct weft_vector *vector);
void weft_all_to_all_move(struct weft_meeting *meeting, const struct weft_vector *vector);

/* dest = source: any of these on a team of one. */
void weft_vector_copy(const struct weft_vector *vector);

#endif
