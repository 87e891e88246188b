/* SPDX-License-Identifier: BSD-3-Clause */
/* The data-moving collectives, for teams and active sets alike: one family a file.
 *
 * dest and source are symmetric, in the memory of the host or of GPUs. Nobody's memory is touched
 * before that member has entered, and on return both arrays are the caller's again. Sizes are in
 * bytes of one member's contribution unless they say otherwise, and more than zero where all must
 * pass the same. */
#ifndef WEFT_COLL_COLLECTIVE_H
#define WEFT_COLL_COLLECTIVE_H

#include "coll/plan.h"

/* dest = the root's source. A root with dest == source has its copy already. */
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

/* The same with blocks of elements that lie apart. */
void weft_group_alltoalls(const struct weft_group *group, void *dest, const void *source,
                          const struct weft_blocks_shape *shape);

/* dest[i] = the fold of the members' source[i], in the order of the members: the same bits on every
 * member and in every run. dest may be source. */
void weft_group_fold(const struct weft_group *group, void *dest, const void *source,
                     const struct weft_folding *folding);

#endif
