/* SPDX-License-Identifier: BSD-3-Clause */
/* Plans of the collectives that copy: who sends, which range, to where; the same for every mover.
 *
 * A member's block for member r begins r * source_block bytes within its source, and what comes
 * from member s begins s * dest_block bytes within dest:
 *
 *                   sender   source_block   dest_block
 *     broadcast     root     0              0
 *     fcollect      all      0              one block
 *     alltoall      all      one block      one block
 *
 * Blocks that all come to the same place are folded there (coll/vector.h):
 *
 *     reduce          all    0              0
 *     reduce-scatter  all    one block      0
 *
 * A block is one piece, or of alltoalls a piece for each element. */
#ifndef WEFT_COLL_PLAN_H
#define WEFT_COLL_PLAN_H

#include "coll/move.h"

enum { WEFT_SENDERS_ALL = -1 };

struct weft_plan {
    int sender; /* the only one, or WEFT_SENDERS_ALL */
    ptrdiff_t source_block, dest_block;
    size_t bytes, npieces; /* of a piece, in a block */
    ptrdiff_t source_piece, dest_piece;
};

static inline struct weft_plan weft_plan_broadcast(size_t bytes, int root) {
    return (struct weft_plan){.sender = root, .bytes = bytes, .npieces = 1};
}

static inline struct weft_plan weft_plan_fcollect(size_t bytes) {
    return (struct weft_plan){
        .sender = WEFT_SENDERS_ALL, .dest_block = (ptrdiff_t)bytes, .bytes = bytes, .npieces = 1};
}

static inline struct weft_plan weft_plan_alltoall(size_t bytes) {
    struct weft_plan plan = weft_plan_fcollect(bytes);
    plan.source_block = plan.dest_block;
    return plan;
}

/* Blocks of nelems elements that lie dest_stride and source_stride elements apart. */
struct weft_blocks_shape {
    size_t nelems, elem_bytes;
    ptrdiff_t dest_stride, source_stride;
};
static inline struct weft_plan weft_plan_alltoalls(const struct weft_blocks_shape *shape) {
    ptrdiff_t elem = (ptrdiff_t)shape->elem_bytes, nelems = (ptrdiff_t)shape->nelems;
    return (struct weft_plan){.sender = WEFT_SENDERS_ALL,
                              .source_block = shape->source_stride * elem * nelems,
                              .dest_block = shape->dest_stride * elem * nelems,
                              .bytes = shape->elem_bytes,
                              .npieces = shape->nelems,
                              .source_piece = shape->source_stride * elem,
                              .dest_piece = shape->dest_stride * elem};
}

static inline struct weft_plan weft_plan_reduce(size_t bytes) {
    return weft_plan_broadcast(bytes, WEFT_SENDERS_ALL);
}

static inline struct weft_plan weft_plan_reduce_scatter(size_t bytes) {
    struct weft_plan plan = weft_plan_reduce(bytes);
    plan.source_block = (ptrdiff_t)bytes;
    return plan;
}

static inline bool weft_plan_sends(const struct weft_plan *plan, int member) {
    return plan->sender == WEFT_SENDERS_ALL || plan->sender == member;
}

/* What member `to` gets from member `from`, as a transfer that `to` makes. */
static inline struct weft_transfer weft_plan_transfer(const struct weft_plan *plan, void *dest,
                                                      const void *source, int from, int to) {
    return (struct weft_transfer){.dest = (char *)dest + from * plan->dest_block,
                                  .source = (const char *)source + to * plan->source_block,
                                  .bytes = plan->bytes,
                                  .npieces = plan->npieces,
                                  .dest_piece = plan->dest_piece,
                                  .source_piece = plan->source_piece};
}

/* Carries a plan out. */
void weft_plan_copy(const struct weft_group *group, const struct weft_mover *mover,
                    const struct weft_plan *plan, void *dest, const void *source);

/* A reduction by copies: each member owns a chunk of the array, pulls the members' parts of it,
 * folds them and pushes the results. */
void weft_plan_fold(const struct weft_group *group, const struct weft_mover *mover, void *dest,
                    const void *source, const struct weft_folding *folding);

#endif
