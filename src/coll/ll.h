/* SPDX-License-Identifier: BSD-3-Clause */
/* Small collectives by packets (coll/ll.cuh): one kernel each, without a meeting.
 *
 * Blocks of `bytes` are at most weft_ll_bytes_max, and not empty; source and dest are any memory
 * that this member's kernels reach, at any address, and the call may be in place. Channels are
 * those of WEFT_FORM_LL, and of WEFT_FORM_DIRECTED for a broadcast. All members call alike. */
#ifndef WEFT_COLL_LL_H
#define WEFT_COLL_LL_H

#include "base/cuda.h"
#include "transport/gpu_channel.h"
#include "coll/number.h"

/* How a block's threads share its work, the same on all members, as are the numbers of blocks and
 * threads. Shared with kernels. */
struct weft_ll_shape {
    uint32_t share;      /* units of 8 bytes of a block, one behind the other */
    uint32_t tile_shift; /* a tile of 2^tile_shift units has a thread for each unit and, as far as
                            there are as many, member */
};

/* The largest block of these channels. */
size_t weft_ll_bytes_max(const struct weft_gpu_channels *channels);

/* Whether weft_ll_reduce has a kernel for this operation on these numbers. */
bool weft_ll_takes(enum weft_fold_op op, enum weft_number number);

/* Each member's block, or its block for this member, to the place of that member in dest; the own
 * one too. All-gather and all-to-all. */
int weft_ll_exchange(const struct weft_gpu_channels *channels,
                     const struct weft_gpu_collective *task, weft_cu_stream stream);

/* Folds the members' blocks, or their blocks for this member, with the host's bits. All-reduce and
 * reduce-scatter. */
int weft_ll_reduce(const struct weft_gpu_channels *channels, const struct weft_gpu_collective *task,
                   weft_cu_stream stream);

/* The root's block to dest of all members. */
int weft_ll_broadcast(const struct weft_gpu_channels *channels,
                      const struct weft_gpu_collective *task, weft_cu_stream stream);

#endif
