/* SPDX-License-Identifier: BSD-3-Clause */
/* How the members of a team exchange the matrices of a product: by copy engines beside products of
 * one GPU (fused/exchange.h), or by Weft's kernel that also multiplies (fused/hopper.h). The
 * members decide together, once for each shape.
 *
 * The kernel needs all multiprocessors of a GPU and waits for other members. Two such kernels of
 * unlike teams could each keep the other one from starting, so a GPU runs those of one team only.
 */
#ifndef WEFT_FUSED_CHOICE_H
#define WEFT_FUSED_CHOICE_H

#include <weft.h>
#include "coll/stream_call.h"
#include "fused/trial.h"

enum weft_fused_way { WEFT_BY_ENGINES, WEFT_BY_KERNEL };
enum { WEFT_FUSED_WAYS = 2 };

/* A call, as its choice sees it. What depends on the member's own matrices is in `fits` alone. */
struct weft_fused_choice {
    const struct weft_on_stream *on;
    const char *operation;
    size_t rows, cols; /* of a shard, or of the sum */
    weft_dtype dtype;
    bool transposed;          /* b */
    bool fits;                /* the kernel can multiply this member's factors */
    enum weft_fused_way rule; /* without a trial */
    /* Makes the whole call in one way; enqueue(context, way, stream). */
    weft_trial_work *enqueue;
    const void *context;
};

/* *way <- the members' choice. The first call of a shape is collective on the host, and then times
 * both ways, unless WEFT_DETERMINISTIC is 1, a member captures its stream, or a member's stream
 * does not end its earlier work within a second; the result of a trial is kept for later runs
 * (fused/memo.h). Later calls are local. Returns 0 or -errno with text. Called where a call is
 * enqueued. */
int weft_fused_choose(enum weft_fused_way *way, const struct weft_fused_choice *choice);

#endif
