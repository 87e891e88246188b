/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives on arrays in the order of a stream: by the library's calls on streams, whose arrays
 * are symmetric. What is wrong there is an error of this member alone, and nothing is enqueued. */
#ifndef WEFT_PYTHON_ON_STREAM_H
#define WEFT_PYTHON_ON_STREAM_H

#include "vectors.h"

/* NotImplementedError if a stream is to work, and does not reduce this type by this operation. */
bool weft_on_stream_check(const struct weft_vectors *vectors);

weft_vectors_by_stream weft_on_stream_all_reduce, weft_on_stream_reduce_scatter,
    weft_on_stream_all_gather, weft_on_stream_all_to_all, weft_on_stream_broadcast;

#endif
