/* SPDX-License-Identifier: BSD-3-Clause */
/* The data-moving collectives of groups with far members, with the contracts of coll/collective.h,
 * for any size unless the head of a family's file states a limit. Each byte is sent to a host once,
 * and the members there share it. */
#ifndef WEFT_COLL_HOSTS_H
#define WEFT_COLL_HOSTS_H

#include "coll/host_push.h"
#include "coll/plan.h"

/* A member's block of a dest. */
struct weft_hosts_block {
    size_t offset, bytes;
    const void *source; /* its address here; NULL for a far member */
};

/* dest = all members' blocks (coll/hosts_gather.c). A push carries one block. */
void weft_hosts_gather(const struct weft_host_push *push, char *dest,
                       const struct weft_hosts_block *blocks);
void weft_hosts_fcollect(const struct weft_group *group, void *dest, const void *source,
                         size_t bytes); /* sources may be the members' own blocks of dest */

/* Executes a plan in which all members send to all (coll/hosts_alltoall.c). */
void weft_hosts_alltoall(const struct weft_group *group, const struct weft_plan *plan, void *dest,
                         const void *source);

/* Along a chain of hosts (coll/hosts_chain.c). Reductions and scans require that the members of
 * each host are consecutive. With `writes` the root's dest is written, too. */
void weft_hosts_broadcast(const struct weft_group *group, void *dest, const void *source,
                          size_t bytes, int root, bool writes);
void weft_hosts_fold_along(struct weft_host_push *push, void *dest, const void *source,
                           const struct weft_folding *folding);

/* Returns whether a reduction is passed along the hosts, with partial results that need room. */
bool weft_hosts_fold_goes_along(const struct weft_levels *levels, const struct weft_fold *fold,
                                bool scatter);

/* Any reduction or scan. */
void weft_hosts_fold(const struct weft_group *group, void *dest, const void *source,
                     const struct weft_folding *folding);

#endif
