/* SPDX-License-Identifier: BSD-3-Clause */
/* Active sets, deprecated: groups that are described anew in every call, and that have no words but
 * those of the caller's pSync.
 *
 * A word of pSync counts: a peer adds one, its owner waits for one and takes it away. So it holds
 * SHMEM_SYNC_VALUE again when a call is over, and a peer that runs ahead into the next call with
 * the same pSync does no harm. Words [0, 32) are the barrier's, one a round; word 32 shows a size;
 * those behind it count what far members have pushed (coll/crossing.h).
 */
#ifndef WEFT_COLL_ACTIVE_H
#define WEFT_COLL_ACTIVE_H

#include "coll/group.h"

/* The first element of this PE's pSync that is not as it has to be before a call, or -1. Peers that
 * are ahead may have counted a word of the barrier up to 1 already. */
int weft_active_unready(const struct weft_group *group);

/* The group of start, start + 2^log_stride, ... (size of them); me is -1 where `pe` is none of
 * them. */
struct weft_group weft_active_group(int start, int log_stride, int size, long *psync, int pe);

#endif
