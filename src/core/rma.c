/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of put and get that are more than one copy. */
#include "core/rma.h"

/* Where the blocks lie on one side, in bytes: [low, low + span) seen from the first block. */
struct strided_side {
    ptrdiff_t step, low;
    size_t span;
};

/* False when no address space is that large. */
static bool lay_out(const struct weft_strided *shape, ptrdiff_t stride, struct strided_side *side) {
    ptrdiff_t block_bytes, reach;
    if (__builtin_mul_overflow(shape->bsize, shape->elem_bytes, &block_bytes) ||
        __builtin_mul_overflow(stride, shape->elem_bytes, &side->step) ||
        __builtin_mul_overflow(side->step, shape->nblocks - 1, &reach))
        return false;
    side->low = reach < 0 ? reach : 0;
    side->span = (reach < 0 ? -(size_t)reach : (size_t)reach) + (size_t)block_bytes;
    return true;
}

bool weft_rma_strided_extent(const struct weft_strided *shape, const void *first, ptrdiff_t stride,
                             const void **lowest, size_t *bytes) {
    struct strided_side side = {0, 0, 0};
    if (shape->nblocks != 0 && shape->bsize != 0 && !lay_out(shape, stride, &side))
        return false;
    *lowest = (const void *)((uintptr_t)first + (uintptr_t)side.low);
    *bytes = side.span;
    return true;
}

/* Where `pe` keeps the blocks whose first is at `first`; NULL and *error when it does not. */
static void *near_blocks(const void *first, const struct strided_side *side, int pe, int *error) {
    const void *lowest = (const void *)((uintptr_t)first + (uintptr_t)side->low);
    char *near = weft_near(lowest, side->span, pe);
    if (near)
        return near - side->low;
    *error = weft_near_error(side->span, pe);
    return NULL;
}

/* Inlined with constant `bytes`, so that the loop holds a load and a store and no call. */
static inline __attribute__((always_inline)) void copy_each(char *dest, ptrdiff_t dest_step,
                                                            const char *source,
                                                            ptrdiff_t source_step, size_t bytes,
                                                            size_t nblocks) {
    for (ptrdiff_t i = 0; i < (ptrdiff_t)nblocks; i++)
        memcpy(dest + i * dest_step, source + i * source_step, bytes);
}

void weft_rma_copy_blocks(void *dest, ptrdiff_t to, const void *source, ptrdiff_t from,
                          size_t bytes, size_t nblocks) {
    if (nblocks == 1 || (to == (ptrdiff_t)bytes && from == (ptrdiff_t)bytes))
        memcpy(dest, source, bytes * nblocks);
    else if (bytes == 1)
        copy_each(dest, to, source, from, 1, nblocks);
    else if (bytes == 2)
        copy_each(dest, to, source, from, 2, nblocks);
    else if (bytes == 4)
        copy_each(dest, to, source, from, 4, nblocks);
    else if (bytes == 8)
        copy_each(dest, to, source, from, 8, nblocks);
    else if (bytes == 16)
        copy_each(dest, to, source, from, 16, nblocks);
    else
        copy_each(dest, to, source, from, bytes, nblocks);
}

enum direction { PUT, GET };

static int move_blocks(enum direction direction, void *dest, const void *source,
                       const struct weft_strided *shape, int pe) {
    struct strided_side to, from;
    int error = -EFAULT;
    if (shape->nblocks == 0 || shape->bsize == 0)
        return 0;
    if (!lay_out(shape, shape->dest_stride, &to) || !lay_out(shape, shape->source_stride, &from))
        return -EFAULT;
    if (direction == PUT)
        dest = near_blocks(dest, &to, pe, &error);
    else
        source = near_blocks(source, &from, pe, &error);
    if (!dest || !source)
        return error;
    weft_rma_copy_blocks(dest, to.step, source, from.step, shape->bsize * shape->elem_bytes,
                         shape->nblocks);
    return 0;
}

int weft_rma_put_strided(void *dest, const void *source, const struct weft_strided *shape, int pe) {
    return move_blocks(PUT, dest, source, shape, pe);
}

int weft_rma_get_strided(void *dest, const void *source, const struct weft_strided *shape, int pe) {
    return move_blocks(GET, dest, source, shape, pe);
}

int weft_rma_put_signal(void *dest, const void *source, size_t bytes, uint64_t *sig_addr,
                        uint64_t signal, enum weft_signal_op op, int pe) {
    if (!weft_near(sig_addr, sizeof *sig_addr, pe))
        return weft_near_error(sizeof *sig_addr, pe);
    int error = weft_rma_put(dest, source, bytes, pe);
    return error ? error : weft_rma_signal(sig_addr, signal, op, pe);
}
