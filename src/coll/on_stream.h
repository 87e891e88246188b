/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives in the order of a CUDA stream, capturable in graphs.
 *
 * Each is one kernel, or a meeting of the members' streams, the work, and another meeting
 * (stream_choice.h). Arrays are symmetric, in any space, except an array that only its own PE
 * reads: that may be any memory that CUDA can copy. An empty call returns 0 and waits for no
 * member. Functions return 0 or -errno with text; they check the arguments first, and enqueue
 * nothing if an argument is wrong. */
#ifndef WEFT_COLL_ON_STREAM_H
#define WEFT_COLL_ON_STREAM_H

#include <stdbool.h>
#include <stdint.h>
#include <weft.h>
#include "coll/stream_call.h"

/* Begin a team's call, in order after its last one, and end it; on->stream is set before. A call
 * that is not OpenSHMEM's enters instead of beginning: it ends the process if the job is over. End
 * returns `error`, or its own. */
int weft_on_stream_enter(struct weft_on_stream *on, shmem_team_t team);
int weft_on_stream_begin(struct weft_on_stream *on, shmem_team_t team);
int weft_on_stream_end(const struct weft_on_stream *on, int error);

/* Finds an array of at least one byte to which kernels of this PE write on all members: symmetric
 * memory, or a part of a block that the team's members share. Members must not be apart. */
int weft_on_stream_find(struct weft_array *all, const struct weft_on_stream *on,
                        const char *argument, const void *p, size_t bytes);

/* Executes a plan whose blocks are one piece each. */
int weft_on_stream_copy(const struct weft_on_stream *on, const struct weft_plan *plan, void *dest,
                        const void *source);

/* Gathers the members' blocks, if one kernel carries them or members are apart: block k of each
 * member's dest <- the source of member k. `dests` is memory that all members can write, such as a
 * half, or this member's own if they are apart; source is memory that kernels of this PE reach. If
 * `ready` is true, no member reads or writes `dests` any more, so the members do not wait for each
 * other before they write; all of them pass the same value. Sets *done to whether they are
 * gathered, the same on all members. */
int weft_on_stream_gather(const struct weft_on_stream *on, const struct weft_array *dests,
                          const void *source, size_t bytes, bool ready, bool *done);

/* dest on all members <- the fold of all sources; dest may be source. Or, to scatter: dest on
 * member k <- the fold of block k of all sources; dest may be block k of source. */
int weft_on_stream_fold(const struct weft_on_stream *on, void *dest, const void *source,
                        const struct weft_stream_folding *folding);

/* Returns whether weft_on_stream_fold takes any GPU memory of this PE as dest and source, the same
 * on all members. */
bool weft_on_stream_folds_any(const struct weft_on_stream *on,
                              const struct weft_stream_folding *folding);

/* weft_all_reduce_rms_norm, as in weft.h. Arrays are reached by kernels of this PE. */
int weft_on_stream_norm(const struct weft_on_stream *on, const void *source, const weft_norm *norm);

/* Makes the channels that the team's calls would make at their first use, if the GPUs are up.
 * Collective over the team, on the host. */
int weft_on_stream_reserve(const struct weft_team *team);

#endif
