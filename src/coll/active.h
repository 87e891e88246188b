/* SPDX-License-Identifier: BSD-3-Clause */
/* Active sets (deprecated): groups that every call describes anew.
 *
 * They synchronize with counting words: a peer adds one, the owner waits for one and subtracts it.
 * So a word is 0 again when a call is over, and a peer that is already in the next call does no
 * harm. The words belong to WORLD, one for each signalling PE; in jobs with SHMEM_THREAD_MULTIPLE
 * they are words [0, 32) of pSync, one for each round. Word 32 of pSync holds a size. The words
 * after it count the pushes of far members (coll/host_push.h): each PE writes them before it meets
 * the others, so their previous values do not matter. */
#ifndef WEFT_COLL_ACTIVE_H
#define WEFT_COLL_ACTIVE_H

#include "coll/group.h"

/* Returns the index of the first element of this PE's pSync that does not have the value required
 * before a call, or -1. Peers that are ahead may already have incremented a round's word to 1. */
int weft_active_unready(const struct weft_group *group);

/* Returns the group of the PEs start, start + 2^log_stride, ... (`size` of them). Its `me` is -1 if
 * `pe` is not a member. */
struct weft_group weft_active_group(int start, int log_stride, int size, long *psync, int pe);

#endif
