/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives of vectors in the order of a CUDA stream: coll/on_stream.h, for types and operations.
 *
 * Nothing tells the members what one of them has passed: the host would have to wait for them. So a
 * wrong argument is this member's error alone, and it has enqueued nothing then. 0 or -errno with
 * text, which begins with `call`. */
#ifndef WEFT_OPS_ON_STREAM_H
#define WEFT_OPS_ON_STREAM_H

#include "coll/on_stream.h"
#include "coll/vector.h"

int weft_vector_reduce_on_stream(const char *call, shmem_team_t team,
                                 const struct weft_vector *vector, weft_stream stream,
                                 weft_reduction_on_stream *how);
int weft_vector_exchange_on_stream(const char *call, shmem_team_t team,
                                   const struct weft_vector *vector, weft_stream stream,
                                   weft_exchange_on_stream *how);
int weft_vector_broadcast_on_stream(const char *call, shmem_team_t team,
                                    const struct weft_vector *vector, int root, weft_stream stream);

#endif
