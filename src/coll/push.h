/* SPDX-License-Identifier: BSD-3-Clause */
/* Exchanges of blocks on a stream by one kernel: the members meet, each pushes its blocks to all,
 * itself included, and they meet again. All-gather, all-to-all and broadcast, of any size and
 * alignment, in place too; nothing is staged, so members' dests lie in memory that all write. */
#ifndef WEFT_COLL_PUSH_H
#define WEFT_COLL_PUSH_H

#include "transport/gpu_channel.h"
#include "transport/gpu_kernel.h"

/* Enqueues this member's part of the call, with the channels of any form. Where dest_step is 0 the
 * root alone pushes, and its dest may be its source. The members' dests lie whole lines of 16 bytes
 * apart, as places of windows do. 0 or -errno with text. */
int weft_push_exchange(const struct weft_gpu_channels *channels,
                       const struct weft_gpu_collective *task, weft_cu_stream stream);

#endif
