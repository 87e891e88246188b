/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives on streams of teams of which some members are far: a thread makes them when the
 * stream gets there (device/proxy.c), among second teams of the same members. */
#ifndef WEFT_COLL_ON_STREAM_FAR_H
#define WEFT_COLL_ON_STREAM_FAR_H

#include "coll/stream_call.h"

/* As weft_on_stream_copy and weft_on_stream_fold. Of a reduction both arrays may be any memory that
 * CUDA can copy. */
int weft_stream_far_move(const struct weft_on_stream *on, const struct weft_plan *plan, void *dest,
                         const void *source);
int weft_stream_far_fold(const struct weft_on_stream *on, void *dest, const void *source,
                         const struct weft_stream_folding *folding);

#endif
