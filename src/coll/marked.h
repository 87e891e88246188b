/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums of floats of middle sizes on a stream, in one kernel, by marked words.
 *
 * All bits of an inbox are set before anybody writes there. A member sends words of numbers, of
 * which none has all bits set, so the receiver sees of each word whether it has come; and sets all
 * bits again once it has read it. 0xffffffff, which is a NaN or two, becomes 0x7fffffff, which is
 * as well. So words need no flags, and stores no order; but they cannot be of any other type.
 *
 * One shot: everybody sends to each what that one needs, and folds what comes. Two shots, of an
 * all-reduce: each folds a chunk, and sends what becomes of it to all. */
#ifndef WEFT_COLL_MARKED_H
#define WEFT_COLL_MARKED_H

#include "transport/gpu_channel.h"
#include "transport/gpu_kernel.h"
#include "coll/number.h"

/* Whether words of these numbers can be marked, and kernels fold them so. */
bool weft_marked_takes(enum weft_fold_op op, enum weft_number number);

/* The largest `bytes` of a task. */
size_t weft_marked_reduce_max(const struct weft_gpu_channels *channels);
size_t weft_marked_all_reduce_max(const struct weft_gpu_channels *channels);

/* One shot: an all-reduce where the task's source_step is 0, else a reduce-scatter. Two shots: an
 * all-reduce; of two members it takes one as long as that has room. `dest` may be the source, or
 * the own block of it. `channels` are of WEFT_FORM_MARKED. Not for empty tasks. */
int weft_marked_reduce(const struct weft_gpu_channels *channels,
                       const struct weft_gpu_collective *task, weft_cu_stream stream);
int weft_marked_all_reduce(const struct weft_gpu_channels *channels,
                           const struct weft_gpu_collective *task, weft_cu_stream stream);

/* An array as blocks, for each member one: that for member m lies m * step behind the first, and
 * has m * less units of 16 bytes less than that. Shared with kernels. */
struct weft_marked_array {
    char *first;
    ptrdiff_t step, bytes;
    uint32_t less, whole; /* units of the first that are 16 aligned bytes */
};

/* What a kernel gets. Each member folds its own block of `from` of all members into that of `to`;
 * `to` has one block, or all of which all members need. A block's `chunk` units are cut into parts
 * for the blocks of the kernel, the same on all members; the last has one unit at least. */
struct weft_marked_work {
    struct weft_marked_array from, to;
    char *epochs; /* this member's, of the first channel, `epoch_step` apart */
    char *inboxes;
    ptrdiff_t inbox_step; /* between the members' */
    int me, n, divisor;
    uint32_t epoch_step, slot_units, chunk, part;
};

#endif
