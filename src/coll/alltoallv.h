/* SPDX-License-Identifier: BSD-3-Clause */
/* All-to-all with varying counts: any number of elements from any member to any member, in nparts
 * parts each.
 *
 * Each member writes a list into its workspace: how many elements it sends to each member, where
 * these are read, and how many it expects from each member. The parts of a private source are
 * copied to a row, which is shown in bands. The row begins with the parts for the next member, so
 * in a band each member reads from a different one.
 *
 *   workspace:  | list: npes * nparts entries | a band of the row |
 *
 * If some members are far, a workspace has room for the lists of all members, and the others' lists
 * are copied there. */
#ifndef WEFT_COLL_ALLTOALLV_H
#define WEFT_COLL_ALLTOALLV_H

#include <weft.h>
#include "coll/meeting.h"

/* Entry r * nparts + k of each array describes part k to, or from, member r. If offsets are NULL,
 * the parts are contiguous. */
struct weft_alltoallv {
    void *dest;
    const void *source;
    const size_t *dest_nelems, *dest_offsets, *source_nelems, *source_offsets;
    size_t nparts;
    weft_dtype dtype;
    size_t source_bytes; /* from the source's first element to the end of the last part */
};

/* Returns the largest valid nparts: the lists in a workspace take at most half of it. */
size_t weft_alltoallv_parts_max(const struct weft_meeting *meeting);

/* Writes this member's list, and the first band of its row, into its workspace, and offers the
 * source. Called before the post. Returns 0 or -errno with text, for weft_meeting_post. */
int weft_alltoallv_offer(struct weft_meeting *meeting, const struct weft_alltoallv *exchange);

/* Compares all counts with the expected ones. Returns 0, or -EINVAL with text, the same on all
 * members. */
int weft_alltoallv_compare(struct weft_meeting *meeting, const struct weft_alltoallv *exchange);

void weft_alltoallv_move(struct weft_meeting *meeting, const struct weft_alltoallv *exchange);

#endif
