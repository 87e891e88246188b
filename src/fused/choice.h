/* SPDX-License-Identifier: BSD-3-Clause */
/* How the members of a team exchange the matrices of a product: by copy engines beside products of
 * one GPU (fused/exchange.h), or by Weft's kernel that also multiplies (fused/hopper.h). The
 * members decide together, once for each shape.
 *
 * The kernel needs all multiprocessors of a GPU and waits for other members. Two such kernels of
 * different teams could each keep the other one from starting, so only one team uses it on a GPU,
 * as long as one of its shapes does, or a graph may. WEFT_PRODUCTS=own does not check this. */
#ifndef WEFT_FUSED_CHOICE_H
#define WEFT_FUSED_CHOICE_H

#include <weft.h>
#include "coll/stream_call.h"
#include "fused/trial.h"

enum weft_fused_way { WEFT_BY_ENGINES, WEFT_BY_KERNEL };
enum { WEFT_FUSED_WAYS = 2 };

/* The facts of a call on which the choice depends. They are the same on all members, except
 * `fits`. */
struct weft_fused_choice {
    const struct weft_on_stream *on;
    const char *operation;
    size_t rows, cols; /* of a shard, or of the sum */
    weft_dtype dtype;
    bool transposed;          /* b */
    bool fits;                /* the kernel can multiply this member's factors */
    enum weft_fused_way rule; /* without a trial */
    /* Enqueues the whole call in one way; enqueue(context, way, stream). */
    weft_trial_work *enqueue;
    const void *context;
};

/* Stores the members' choice in *way. The first call of a shape is collective on the host. It times
 * both ways, and keeps the result for later runs (fused/memo.h), unless WEFT_DETERMINISTIC is 1, an
 * earlier run's result is kept, a member captures its stream, or a member's stream does not end its
 * earlier work within a second. Later calls are local, but if that call was captured, the first
 * call outside of a capture is collective again. A team chooses for at most 64 shapes; others use
 * copy engines. Returns 0 or -errno with text. Called where a call is enqueued. */
int weft_fused_choose(enum weft_fused_way *way, const struct weft_fused_choice *choice);

#endif
