/* SPDX-License-Identifier: BSD-3-Clause */
/* The vector operators in the order of a CUDA stream.
 *
 * Nothing tells the members what one of them has passed: the host would have to wait for them. So a
 * wrong argument is this member's error alone, and it has enqueued nothing then. Arrays are
 * symmetric, but the sources of what only moves, which may be any memory that CUDA can copy. 0 or
 * -errno with text. */
#ifndef WEFT_OPS_ON_STREAM_H
#define WEFT_OPS_ON_STREAM_H

#include "coll/meeting.h"
#include "coll/vector.h"

int weft_vector_all_reduce_on_stream(shmem_team_t team, const struct weft_vector *vector,
                                     weft_stream stream);
int weft_vector_reduce_scatter_on_stream(shmem_team_t team, const struct weft_vector *vector,
                                         weft_stream stream);
int weft_vector_all_gather_on_stream(shmem_team_t team, const struct weft_vector *vector,
                                     weft_stream stream);
int weft_vector_broadcast_on_stream(shmem_team_t team, const struct weft_vector *vector, int root,
                                    weft_stream stream);
int weft_vector_all_to_all_on_stream(shmem_team_t team, const struct weft_vector *vector,
                                     weft_stream stream);

#endif
