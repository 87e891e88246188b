/* SPDX-License-Identifier: BSD-3-Clause */
/* How the members of a team send each other parts of matrices while their GPUs multiply:
 *
 *   stream   ---- fork ---- product ------ join ---- product of what has arrived ---->
 *                   \                      /
 *   beside           push, push, ... meet
 *
 * A push copies a part to another member's memory. After the meeting the pushes of all members have
 * arrived. Members that are alone in their team push nothing. Functions return 0 or -errno with
 * text. */
#ifndef WEFT_FUSED_EXCHANGE_H
#define WEFT_FUSED_EXCHANGE_H

#include "device/half.h"
#include "coll/stream_call.h"

/* A call between weft_on_stream_begin and _end. Each member has a half of a region, to which the
 * others push, and memory of its own: room for its products, then what the call asks for. If
 * members are apart (weft_on_stream_is_apart), the half is this member's own, too, and nobody
 * pushes. */
struct weft_fused {
    const struct weft_on_stream *on;
    struct weft_device_half half;
    char *room, *own;
    weft_cu_stream beside;
};

/* The bytes that a call needs. */
struct weft_fused_sizes {
    size_t half; /* the same on all members; 0: the members do not meet in this call */
    size_t room, own;
};

/* Prepares the memory. A call with a half has at least one meeting. */
int weft_fused_open(struct weft_fused *f, const struct weft_on_stream *on,
                    const struct weft_fused_sizes *sizes);

/* Returns the address of byte `at` of a member's half. */
char *weft_fused_at(const struct weft_fused *f, int member, size_t at);

/* If a graph may still use the half, meets all members on the stream, once in a call, before any
 * member writes to the others' halves. The first fork of a call does so, too. */
int weft_fused_begin_writes(struct weft_fused *f);

/* Starts the pushes of a call: they wait for the work now on the stream, and run beside its later
 * work. Every fork needs a join, also after an error. */
int weft_fused_fork(struct weft_fused *f);

/* Pushes `bytes` to another member's half. Between fork and join. */
int weft_fused_push(const struct weft_fused *f, int member, size_t at, const void *from,
                    size_t bytes);

/* Makes f->beside wait until the pushes of all members have arrived. Between fork and join. */
int weft_fused_meet(const struct weft_fused *f);

/* Makes the stream wait for all work since the fork. Returns `error` if it is not 0, otherwise the
 * result of the join. */
int weft_fused_join(const struct weft_fused *f, int error);

/* Returns the member `distance` places after this one. Members push in this order, so no two push
 * to the same member at a time. */
int weft_fused_member(const struct weft_fused *f, int distance);

/* Copies rows of `bytes`, which begin `to_step` and `from_step` bytes apart, on a stream: between
 * memory of this GPU and any memory. */
struct weft_fused_rows {
    char *at;
    size_t step;
};
int weft_fused_copy_rows(struct weft_fused_rows to, struct weft_fused_rows from, size_t bytes,
                         size_t nrows, weft_cu_stream stream);

#endif
