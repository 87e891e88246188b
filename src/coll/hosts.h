/* SPDX-License-Identifier: BSD-3-Clause */
/* The data-moving collectives of groups with far members, as coll/collective.h has them: of any
 * size where the head of a family's file says nothing else. A byte crosses from one host to another
 * once, and the members there share it. */
#ifndef WEFT_COLL_HOSTS_H
#define WEFT_COLL_HOSTS_H

#include "coll/host_push.h"
#include "coll/plan.h"

/* A member's block of a dest. */
struct weft_hosts_block {
    size_t offset, bytes;
    const void *source; /* mapped here; of a far member NULL */
};

/* dest = all members' blocks (coll/hosts_gather.c). Each push is one of these. */
void weft_hosts_gather(const struct weft_host_push *push, char *dest,
                       const struct weft_hosts_block *blocks);
void weft_hosts_fcollect(const struct weft_group *group, void *dest, const void *source,
                         size_t bytes); /* sources may be the members' own blocks of dest */

/* A plan in which all send to all (coll/hosts_alltoall.c). */
void weft_hosts_alltoall(const struct weft_group *group, const struct weft_plan *plan, void *dest,
                         const void *source);

/* Along the hosts, one behind the other (coll/hosts_chain.c). For reductions and scans members of a
 * host have to follow each other. With `writes` the root's dest is written, too. */
void weft_hosts_broadcast(const struct weft_group *group, void *dest, const void *source,
                          size_t bytes, int root, bool writes);
void weft_hosts_fold_along(struct weft_host_push *push, void *dest, const void *source,
                           const struct weft_folding *folding);

/* Returns whether a reduction goes along the hosts, with partial results that need room. */
bool weft_hosts_fold_goes_along(const struct weft_levels *levels, const struct weft_fold *fold,
                                bool scatter);

/* Any reduction or scan. */
void weft_hosts_fold(const struct weft_group *group, void *dest, const void *source,
                     const struct weft_folding *folding);

#endif
