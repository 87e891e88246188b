/* SPDX-License-Identifier: BSD-3-Clause */
/* The layout of strided accesses. */
#ifndef WEFT_JOB_STRIDED_H
#define WEFT_JOB_STRIDED_H

#include <stdbool.h>
#include <stddef.h>

/* nblocks blocks of bsize elements; blocks start dest_stride elements apart at the destination
 * and source_stride elements apart at the source. Strides may be negative or zero. */
struct weft_strided {
    size_t elem_bytes, bsize, nblocks;
    ptrdiff_t dest_stride, source_stride;
};

/* A copy of nblocks blocks of `bytes` each. Blocks begin dest_step bytes apart at the destination
 * and source_step bytes apart at the source. */
struct weft_strided_copy {
    char *dest;
    const char *source;
    ptrdiff_t dest_step, source_step;
    size_t bytes, nblocks;
};

/* The blocks of one side, in bytes: they begin `step` apart and occupy [low, low + span) relative
 * to the first block. */
struct weft_strided_side {
    ptrdiff_t step, low;
    size_t span;
};

static inline bool weft_strided_is_empty(const struct weft_strided *shape) {
    return shape->nblocks == 0 || shape->bsize == 0;
}

/* Computes the layout of one side of a shape that is not empty. Returns false if it exceeds the
 * address space. */
static inline bool weft_strided_lay_out(const struct weft_strided *shape, ptrdiff_t stride,
                                        struct weft_strided_side *side) {
    ptrdiff_t block_bytes, reach;
    if (__builtin_mul_overflow(shape->bsize, shape->elem_bytes, &block_bytes) ||
        __builtin_mul_overflow(stride, shape->elem_bytes, &side->step) ||
        __builtin_mul_overflow(side->step, shape->nblocks - 1, &reach))
        return false;
    side->low = reach < 0 ? reach : 0;
    side->span = (reach < 0 ? -(size_t)reach : (size_t)reach) + (size_t)block_bytes;
    return true;
}

#endif
