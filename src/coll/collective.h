/* SPDX-License-Identifier: BSD-3-Clause */
/* The data-moving collectives, for teams and active sets alike.
 *
 * dest and source are symmetric. Every member reads its peers' memory directly and writes its own,
 * except that reductions and scans write a finished chunk to all. Nobody's memory is touched before
 * that member has entered, and on return both arrays are the caller's again. Sizes are in bytes of
 * one member's contribution unless they say otherwise, and more than zero where all must pass the
 * same. */
#ifndef WEFT_COLL_COLLECTIVE_H
#define WEFT_COLL_COLLECTIVE_H

#include <stdbool.h>
#include <stddef.h>
#include "coll/fold.h"
#include "coll/group.h"

/* dest = the root's source. A root with dest == source has its copy already. (weft_broadcast is the
 * tensor operator.) */
void weft_group_broadcast(const struct weft_group *group, void *dest, const void *source,
                          size_t bytes, int root);

/* dest = all sources in the order of the members. fcollect: all bring the same. collect: each
 * brings what it likes, also nothing. */
void weft_group_fcollect(const struct weft_group *group, void *dest, const void *source,
                         size_t bytes);
void weft_group_collect(const struct weft_group *group, void *dest, const void *source,
                        size_t bytes);

/* Block i of dest = block `me` of member i's source; a block has `bytes`. */
void weft_group_alltoall(const struct weft_group *group, void *dest, const void *source,
                         size_t bytes);

/* The same with blocks of nelems elements that lie dest_stride and source_stride elements apart. */
struct weft_blocks_shape {
    size_t nelems, elem_bytes;
    ptrdiff_t dest_stride, source_stride;
};
void weft_group_alltoalls(const struct weft_group *group, void *dest, const void *source,
                          const struct weft_blocks_shape *shape);

/* dest[i] = the fold of all members' source[i], in the order of the members: the same bits on every
 * member and in every run. dest may be source. */
void weft_group_reduce(const struct weft_group *group, void *dest, const void *source,
                       size_t nelems, const struct weft_fold *fold);

/* dest[i] = the fold of source[i] of the members up to this one, or before this one: then member 0
 * gets zeros, so that the fold must be a sum. dest may be source. */
void weft_group_scan(const struct weft_group *group, void *dest, const void *source, size_t nelems,
                     const struct weft_fold *fold, bool inclusive);

#endif
