/* SPDX-License-Identifier: BSD-3-Clause */
/* The general way of a collective on a stream: a meeting, the work by kernels or copy engines, a
 * meeting. It accepts any memory that CUDA can copy, and GPUs that do not reach each other's
 * memory. */
#ifndef WEFT_COLL_ON_STREAM_MEET_H
#define WEFT_COLL_ON_STREAM_MEET_H

#include "coll/stream_call.h"

/* Executes a plan whose blocks are one piece each; `to` are the members' dests. */
int weft_stream_meet_copy(const struct weft_on_stream *on, const struct weft_plan *plan,
                          const struct weft_stream_arrays *to, const void *source);

/* Folds between two meetings of all members; `most` is the number of elements of the largest task
 * of a member. Arrays are those that kernels of this PE reach. */
int weft_stream_fold_between(const struct weft_on_stream *on, const struct weft_fold_task *task,
                             size_t most);

/* Both arrays of a reduction on all members; source has `times` the elements of dest. */
struct weft_stream_reduced {
    struct weft_stream_arrays to, from;
    size_t nelems, elem_bytes, times;
    struct weft_reduction reduction;
};
int weft_stream_meet_fold(const struct weft_on_stream *on,
                          const struct weft_stream_reduced *reduced);

/* Gathers the blocks of members whose GPUs do not reach each other's memory: block k of dest <- the
 * source of member k. Both arrays are in any memory that this PE's GPU reaches. */
int weft_stream_gather_staged(const struct weft_on_stream *on, char *dest, const char *source,
                              size_t bytes);

#endif
