/* SPDX-License-Identifier: BSD-3-Clause */
/* The data-moving collectives of teams and active sets. Each family has a file.
 *
 * dest and source are symmetric, in host or GPU memory. A member's memory is not
 * accessed before that member has entered, and on return the caller may write both arrays. Sizes
 * are in bytes of one member's contribution unless stated otherwise, and more than zero if all
 * members must pass the same. */
#ifndef WEFT_COLL_COLLECTIVE_H
#define WEFT_COLL_COLLECTIVE_H

#include "coll/plan.h"

/* dest = the root's source, except on the root of an active set, whose dest is not written. If dest
 * == source on the root, there is nothing to copy there. */
void weft_group_broadcast(const struct weft_group *group, void *dest, const void *source,
                          size_t bytes, int root);

/* dest = all sources in the order of the members. fcollect: all members contribute the same size.
 * collect: each member contributes any size, also zero. */
void weft_group_fcollect(const struct weft_group *group, void *dest, const void *source,
                         size_t bytes);
void weft_group_collect(const struct weft_group *group, void *dest, const void *source,
                        size_t bytes);

/* Block i of dest = block `me` of member i's source; a block has `bytes`. */
void weft_group_alltoall(const struct weft_group *group, void *dest, const void *source,
                         size_t bytes);

/* As weft_group_alltoall, for blocks whose elements are strided. */
void weft_group_alltoalls(const struct weft_group *group, void *dest, const void *source,
                          const struct weft_blocks_shape *shape);

/* dest[i] = the fold of the members' source[i], in the order of the members: the same bits on every
 * member and in every run. dest may be source. */
void weft_group_fold(const struct weft_group *group, void *dest, const void *source,
                     const struct weft_folding *folding);

#endif
