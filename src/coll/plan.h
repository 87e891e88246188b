/* SPDX-License-Identifier: BSD-3-Clause */
/* Plans of the collectives that copy: who sends which range, and to where; the same for every
 * mover.
 *
 * A member's block for member r begins r * source_block bytes within its source, and the block from
 * member s begins s * dest_block bytes within dest:
 *
 *                   sender   source_block   dest_block
 *     broadcast     root     0              0
 *     fcollect      all      0              one block
 *     alltoall      all      one block      one block
 *
 * Blocks that arrive at the same place are folded there (coll/vector.h):
 *
 *     reduce          all    0              0
 *     reduce-scatter  all    one block      0
 *
 * A block is one piece; in alltoalls it has a piece for each element. */
#ifndef WEFT_COLL_PLAN_H
#define WEFT_COLL_PLAN_H

#include "coll/move.h"

enum { WEFT_SENDERS_ALL = -1 };

struct weft_plan {
    int sender; /* the only sender, or WEFT_SENDERS_ALL */
    ptrdiff_t source_block, dest_block;
    struct weft_pieces pieces; /* of a block */
};

/* Returns a plan whose blocks are one piece each. Every field is named: a compiler clears unnamed
 * fields with stores that overlap, and the next load has to wait for them. */
static inline struct weft_plan weft_plan_of(int sender, size_t source_block, size_t dest_block,
                                            size_t bytes) {
    return (struct weft_plan){.sender = sender,
                              .source_block = (ptrdiff_t)source_block,
                              .dest_block = (ptrdiff_t)dest_block,
                              .pieces = {bytes, 1, 0, 0, false}};
}

static inline struct weft_plan weft_plan_broadcast(size_t bytes, int root) {
    return weft_plan_of(root, 0, 0, bytes);
}

static inline struct weft_plan weft_plan_fcollect(size_t bytes) {
    return weft_plan_of(WEFT_SENDERS_ALL, 0, bytes, bytes);
}

static inline struct weft_plan weft_plan_alltoall(size_t bytes) {
    return weft_plan_of(WEFT_SENDERS_ALL, bytes, bytes, bytes);
}

static inline struct weft_plan weft_plan_reduce(size_t bytes) {
    return weft_plan_of(WEFT_SENDERS_ALL, 0, 0, bytes);
}

static inline struct weft_plan weft_plan_reduce_scatter(size_t bytes) {
    return weft_plan_of(WEFT_SENDERS_ALL, bytes, 0, bytes);
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
                              .pieces = {.bytes = shape->elem_bytes,
                                         .count = shape->nelems,
                                         .dest_step = shape->dest_stride * elem,
                                         .source_step = shape->source_stride * elem}};
}

static inline bool weft_plan_sends(const struct weft_plan *plan, int member) {
    return plan->sender == WEFT_SENDERS_ALL || plan->sender == member;
}

/* Return where this member's block for member `to` begins, and where the block from member `from`
 * is stored. */
static inline const char *weft_plan_source(const struct weft_plan *plan, const void *source,
                                           int to) {
    return (const char *)source + to * plan->source_block;
}
static inline char *weft_plan_dest(const struct weft_plan *plan, void *dest, int from) {
    return (char *)dest + from * plan->dest_block;
}

/* Executes a plan, and decides whether it copies past the cache. */
void weft_plan_copy(const struct weft_group *group, const struct weft_mover *mover,
                    struct weft_plan *plan, void *dest, const void *source);

/* Executes a reduction with copies: each member owns a chunk of the array, pulls the members' parts
 * of it, folds them and pushes the results. */
void weft_plan_fold(const struct weft_group *group, const struct weft_mover *mover, void *dest,
                    const void *source, const struct weft_folding *folding);

/* As weft_plan_fold, without meetings: folds this member's chunk, or its block of a reduce-scatter,
 * for all members or only for its own dest. weft_plan_chunk_begin returns where a member's chunk
 * begins, in elements; for member npes, the end. */
void weft_plan_fold_chunk(const struct weft_group *group, const struct weft_mover *mover,
                          void *dest, const void *source, const struct weft_folding *folding,
                          bool for_all);
size_t weft_plan_chunk_begin(const struct weft_group *group, const struct weft_folding *folding,
                             int member);

#endif
