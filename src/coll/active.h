/* SPDX-License-Identifier: BSD-3-Clause */
/* Active sets, deprecated: groups that are described anew in every call.
 *
 * They synchronize by words that count: a peer adds one, the owner waits for one and takes it away.
 * So a word is 0 again when a call is over, and a peer that runs ahead into the next call does no
 * harm. The words are WORLD's, one for each PE that signals; in jobs with SHMEM_THREAD_MULTIPLE
 * they are words [0, 32) of pSync, one a round. Word 32 of pSync shows a size; those behind it
 * count what far members have pushed (coll/host_push.h): each PE writes them before it meets the
 * others, so that nothing depends on what pSync has held.
 */
#ifndef WEFT_COLL_ACTIVE_H
#define WEFT_COLL_ACTIVE_H

#include "coll/group.h"

/* The first element of this PE's pSync that is not as it has to be before a call, or -1. Peers that
 * are ahead may have counted a word of a round up to 1 already. */
int weft_active_unready(const struct weft_group *group);

/* The group of start, start + 2^log_stride, ... (size of them); me is -1 where `pe` is none of
 * them. */
struct weft_group weft_active_group(int start, int log_stride, int size, long *psync, int pe);

#endif
