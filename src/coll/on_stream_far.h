/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives on streams of teams with far members: a thread executes them when the stream reaches
 * the call (device/proxy.c), with a second team of the same members. */
#ifndef WEFT_COLL_ON_STREAM_FAR_H
#define WEFT_COLL_ON_STREAM_FAR_H

#include "coll/stream_call.h"

/* Do the work of weft_on_stream_copy, _gather and _fold. Both arrays of the latter two may be any
 * memory that kernels of this PE reach. */
int weft_stream_far_move(const struct weft_on_stream *on, const struct weft_plan *plan, void *dest,
                         const void *source);
int weft_stream_far_gather(const struct weft_on_stream *on, void *dest, const void *source,
                           size_t bytes);
int weft_stream_far_fold(const struct weft_on_stream *on, void *dest, const void *source,
                         const struct weft_stream_folding *folding);

#endif
