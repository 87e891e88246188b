/* SPDX-License-Identifier: BSD-3-Clause */
/* How the members of a team send each other parts of matrices while their GPUs multiply:
 *
 *   stream   ---- fork ---- product ------ join ---- product of what has arrived ---->
 *                   \                      /
 *   beside           push, push, ... meet
 *
 * A push copies a part to a slot of another member's memory. After the meeting the pushes of all
 * members have arrived. Members that are alone in their team push nothing. Functions return 0 or
 * -errno with text. */
#ifndef WEFT_FUSED_EXCHANGE_H
#define WEFT_FUSED_EXCHANGE_H

#include "device/half.h"
#include "coll/stream_call.h"

/* A call between weft_on_stream_begin and _end, and the slots of all members, in host order of
 * addresses: slot i of a member lies i * slot_bytes after its slot 0. */
struct weft_fused {
    const struct weft_on_stream *on;
    struct weft_device_half half;
    size_t slot_bytes;
    char *room; /* GPU memory of this member alone: WEFT_PRODUCT_ROOM_BYTES, then what was asked for
                 */
    weft_cu_stream beside;
};

/* Prepares `slots` slots in each member's memory, the same number on all members, and `own_bytes`
 * of this member's own. A call with slots has at least one meeting. */
int weft_fused_open(struct weft_fused *f, const struct weft_on_stream *on, size_t slots,
                    size_t slot_bytes, size_t own_bytes);

/* Return the address of a member's slot, and of this member's own memory. */
char *weft_fused_slot(const struct weft_fused *f, int member, size_t slot);
char *weft_fused_own(const struct weft_fused *f);

/* Lets pushes follow what is on the stream now, while later work of the stream goes on. Every fork
 * needs a join, also after an error. */
int weft_fused_fork(struct weft_fused *f);

/* Pushes `bytes` to a slot of another member. Between fork and join. */
int weft_fused_push(const struct weft_fused *f, int member, size_t slot, const void *from,
                    size_t bytes);

/* Lets the pushes of all members arrive. Between fork and join. */
int weft_fused_meet(const struct weft_fused *f);

/* The stream's later work follows what was enqueued since the fork. Returns `error`, or its own. */
int weft_fused_join(const struct weft_fused *f, int error);

/* Returns the members in the order in which this one sends to them: the next one first, so that no
 * two members send to the same one at a time. */
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
