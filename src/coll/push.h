/* SPDX-License-Identifier: BSD-3-Clause */
/* Exchanges of blocks on a stream with one kernel: the members meet, unless all dests are ready,
 * each pushes its blocks to all members, itself included, and they meet again. For all-gather,
 * all-to-all and broadcast, of any size and alignment, also in place. Nothing is staged, so the
 * members' dests must be in memory that all members can write. */
#ifndef WEFT_COLL_PUSH_H
#define WEFT_COLL_PUSH_H

#include "transport/gpu_channel.h"
#include "transport/gpu_kernel.h"

/* Enqueues this member's part of the call, with channels of any form. If dest_step is 0, only the
 * root pushes, and its dest may be its source. The distance between the members' dests is a
 * multiple of 16 bytes, as between slots of windows. Returns 0, or -errno with text. */
int weft_push_exchange(const struct weft_gpu_channels *channels,
                       const struct weft_gpu_collective *task, weft_cu_stream stream);

#endif
