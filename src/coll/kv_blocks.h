/* SPDX-License-Identifier: BSD-3-Clause */
/* Blocks of caches that a member of a team sends to another one (weft_kv_shuffle), by processors or
 * messages. */
#ifndef WEFT_COLL_KV_BLOCKS_H
#define WEFT_COLL_KV_BLOCKS_H

#include <weft.h>
#include "coll/move.h"

/* A member's part of a call; its arrays are in host memory. */
struct weft_kv_blocks {
    weft_kv_caches caches;
    int peer; /* -1: no pair */
    int role; /* WEFT_KV_SENDS or WEFT_KV_RECEIVES */
    const int64_t *from, *to;
    size_t count; /* entries of both */
};

/* Checks the pair, and, of a member that sends, the numbers of blocks. Returns 0 or -EINVAL with
 * text. */
int weft_kv_blocks_check(const struct weft_kv_blocks *blocks, int me, int npes);

/* Sends the blocks, if this member sends. They may be under way on return, until the mover
 * completes them. Caches are symmetric, or in blocks of memory that the team's members share. The
 * receiver must have entered the call. */
void weft_kv_blocks_send(const struct weft_group *group, const struct weft_mover *mover,
                         const struct weft_kv_blocks *blocks);

#endif
