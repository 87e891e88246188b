/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums of floats of medium sizes on a stream, in one kernel, with marked words.
 *
 * All bits of an inbox are set before any member writes there. A member never sends a word with all
 * bits set, so the receiver sees of each word whether it has arrived, and sets all bits again after
 * it has read the word. 0xffffffff, which is one NaN or two, is sent as 0x7fffffff, which is a NaN
 * as well. So words need no flags, and stores need no order; but other types cannot be sent.
 *
 * One shot: each member sends the others the data that they need, and folds what it receives. Two
 * shots, of an all-reduce: each member folds a chunk, and sends the result to all. */
#ifndef WEFT_COLL_MARKED_H
#define WEFT_COLL_MARKED_H

#include "transport/gpu_channel.h"
#include "transport/gpu_kernel.h"
#include "coll/number.h"

/* Returns whether words of these numbers can be marked, and kernels have this operation. */
bool weft_marked_takes(enum weft_fold_op op, enum weft_number number);

/* Return the largest `bytes` of a task. */
size_t weft_marked_reduce_max(const struct weft_gpu_channels *channels);
size_t weft_marked_all_reduce_max(const struct weft_gpu_channels *channels);

/* One shot: an all-reduce if the task's source_step is 0, otherwise a reduce-scatter. Two shots: an
 * all-reduce; with two members it takes one shot as long as that has room. `dest` may be the
 * source, or this member's block of it. `channels` are of WEFT_FORM_MARKED. Tasks must not be
 * empty. */
int weft_marked_reduce(const struct weft_gpu_channels *channels,
                       const struct weft_gpu_collective *task, weft_cu_stream stream);
int weft_marked_all_reduce(const struct weft_gpu_channels *channels,
                           const struct weft_gpu_collective *task, weft_cu_stream stream);

/* An array as blocks, one for each member: the block for member m begins m * step bytes after the
 * first, and has m * less units of 16 bytes less. Shared with kernels. */
struct weft_marked_array {
    char *first;
    ptrdiff_t step, bytes;
    uint32_t less, whole; /* units of the first block that are 16 aligned bytes */
};

/* The argument of a kernel. Each member folds its own block of `from` of all members into its block
 * of `to`. `to` has one block, or the blocks of all members, which all members receive. A block's
 * `chunk` units are split into parts for the blocks of the kernel, in the same way on all members;
 * the last part has one unit at least. */
struct weft_marked_work {
    struct weft_marked_array from, to;
    char *epochs; /* this member's word of the first channel; the words are `epoch_step` apart */
    char *inboxes;
    ptrdiff_t inbox_step; /* between the members' inboxes */
    int me, n, divisor;
    uint32_t epoch_step, slot_units, chunk, part;
};

/* Returns the array whose blocks have `bytes` and begin `step` bytes apart. */
struct weft_marked_array weft_marked_array_of(const void *first, size_t bytes, size_t step);

/* Sets this member and its inboxes: all but the arrays, the divisor, the chunk and the part. */
void weft_marked_connect(struct weft_marked_work *work, const struct weft_gpu_channels *channels);

#endif
