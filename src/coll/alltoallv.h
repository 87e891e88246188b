/* SPDX-License-Identifier: BSD-3-Clause */
/* All-to-all of varying counts: any number of elements from any member to any other, in nparts
 * parts each.
 *
 * Each member shows a list in its workspace: what it sends to whom, where that is read, and what it
 * expects from whom. A private source follows in bands of the row of all its parts, beginning with
 * those for the next member, so that in a band each member reads from another one.
 *
 *   workspace:  | list: npes * nparts entries | a band of the row |
 *
 * Where some members are far, a workspace has room for the lists of all, each in its member's
 * place: what the others show is copied there. */
#ifndef WEFT_COLL_ALLTOALLV_H
#define WEFT_COLL_ALLTOALLV_H

#include <weft.h>
#include "coll/meeting.h"

/* Entry r * nparts + k of each array is part k to, or from, member r. Offsets that are NULL: the
 * parts lie one behind the other. */
struct weft_alltoallv {
    void *dest;
    const void *source;
    const size_t *dest_nelems, *dest_offsets, *source_nelems, *source_offsets;
    size_t nparts;
    weft_dtype dtype;
    size_t source_bytes; /* from the source's first element to the end of what is sent */
};

/* How large nparts may be: the list takes half of a workspace at most. */
size_t weft_alltoallv_parts_max(const struct weft_meeting *meeting);

/* Offers the source and the lists. Returns 0 or -errno with text, for weft_meeting_post. */
int weft_alltoallv_offer(struct weft_meeting *meeting, const struct weft_alltoallv *exchange);

/* Whether everyone expects what is sent to it: 0, or -EINVAL with text, the same on all members. */
int weft_alltoallv_compare(struct weft_meeting *meeting, const struct weft_alltoallv *exchange);

void weft_alltoallv_move(struct weft_meeting *meeting, const struct weft_alltoallv *exchange);

#endif
