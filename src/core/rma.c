/* SPDX-License-Identifier: BSD-3-Clause */
/* Puts and gets that take more than one copy, and the slow path for memory that is not near. */
#include "core/rma.h"

bool weft_rma_strided_extent(const struct weft_strided *shape, const void *first, ptrdiff_t stride,
                             const void **lowest, size_t *bytes) {
    struct weft_strided_side side = {0, 0, 0};
    if (!weft_strided_is_empty(shape) && !weft_strided_lay_out(shape, stride, &side))
        return false;
    *lowest = (const void *)((uintptr_t)first + (uintptr_t)side.low);
    *bytes = side.span;
    return true;
}

/* Inlined. With constant `bytes` the loop contains a load and a store and no call. */
static inline __attribute__((always_inline)) void copy_each(const struct weft_strided_copy *copy,
                                                            size_t bytes) {
    struct weft_strided_copy c = *copy; /* a local copy, which the blocks cannot alias */
    for (ptrdiff_t i = 0; i < (ptrdiff_t)c.nblocks; i++)
        memcpy(c.dest + i * c.dest_step, c.source + i * c.source_step, bytes);
}

void weft_rma_copy_strided(const struct weft_strided_copy *copy) {
    ptrdiff_t packed = (ptrdiff_t)copy->bytes;
    if (copy->nblocks == 1 || (copy->dest_step == packed && copy->source_step == packed))
        memcpy(copy->dest, copy->source, copy->bytes * copy->nblocks);
    else if (copy->bytes == 1)
        copy_each(copy, 1);
    else if (copy->bytes == 2)
        copy_each(copy, 2);
    else if (copy->bytes == 4)
        copy_each(copy, 4);
    else if (copy->bytes == 8)
        copy_each(copy, 8);
    else if (copy->bytes == 16)
        copy_each(copy, 16);
    else
        copy_each(copy, copy->bytes);
}

enum direction { PUT, GET };

/* Copies the blocks if all blocks on `pe` are near; returns whether they are. Inlined, so that
 * callers reach the slow path by a tail call. */
WEFT_RMA_INLINE bool copy_near(enum direction direction, void *dest, const void *source,
                               const struct weft_strided *shape, int pe) {
    struct weft_strided_side to, from, *theirs = direction == PUT ? &to : &from;
    if (weft_strided_is_empty(shape))
        return true;
    if (!weft_strided_lay_out(shape, shape->dest_stride, &to) ||
        !weft_strided_lay_out(shape, shape->source_stride, &from))
        return false;
    uintptr_t lowest = (uintptr_t)(direction == PUT ? dest : source) + (uintptr_t)theirs->low;
    char *near = weft_near((const void *)lowest, theirs->span, pe);
    if (__builtin_expect(!near, 0))
        return false;
    near -= theirs->low;
    weft_rma_copy_strided(&(struct weft_strided_copy){
        direction == PUT ? near : dest, direction == PUT ? source : near, to.step, from.step,
        shape->bsize * shape->elem_bytes, shape->nblocks});
    return true;
}

/* Ends the job because the access is invalid: its symmetric side, from the lowest to the highest
 * byte, or else the stride of its local side. */
static _Noreturn void strided_refuse(enum direction direction, const void *first,
                                     const struct weft_strided *shape, int pe) {
    bool put = direction == PUT;
    ptrdiff_t there = put ? shape->dest_stride : shape->source_stride;
    ptrdiff_t here = put ? shape->source_stride : shape->dest_stride;
    struct weft_strided_side side;
    const void *lowest = first;
    size_t bytes = SIZE_MAX;
    bool fits = weft_rma_strided_extent(shape, first, there, &lowest, &bytes);
    if (fits && !weft_strided_lay_out(shape, here, &side))
        weft_misuse_constant(weft_current_call, put ? "sst" : "dst", here,
                             "a stride with which the elements fit into an address space");
    weft_misuse_access(weft_current_call, put ? "dest" : "source", first ? lowest : NULL, bytes,
                       pe);
}

WEFT_COLD static void put_strided_slow(void *dest, const void *source,
                                       const struct weft_strided *shape, int pe, const char *call) {
    WEFT_IN_CALL(call);
    const struct weft_operations *operations = weft_dispatch_of(dest, source, pe);
    if (!operations || operations->put_strided(dest, source, shape, pe) != 0)
        strided_refuse(PUT, dest, shape, pe);
}

void weft_rma_put_strided(void *dest, const void *source, const struct weft_strided *shape, int pe,
                          const char *call) {
    if (weft_dispatch_of(dest, source, pe) || !copy_near(PUT, dest, source, shape, pe))
        put_strided_slow(dest, source, shape, pe, call);
}

WEFT_COLD static void get_strided_slow(void *dest, const void *source,
                                       const struct weft_strided *shape, int pe, const char *call) {
    WEFT_IN_CALL(call);
    const struct weft_operations *operations = weft_dispatch_of(source, dest, pe);
    if (!operations || operations->get_strided(dest, source, shape, pe) != 0)
        strided_refuse(GET, source, shape, pe);
}

void weft_rma_get_strided(void *dest, const void *source, const struct weft_strided *shape, int pe,
                          const char *call) {
    if (weft_dispatch_of(source, dest, pe) || !copy_near(GET, dest, source, shape, pe))
        get_strided_slow(dest, source, shape, pe, call);
}

/* --- The slow path --------------------------------------------------------------------------- */

int weft_rma_put_near(void *dest, const void *source, size_t bytes, int pe) {
    void *near = weft_near(dest, bytes, pe);
    if (!near)
        return weft_near_error(bytes, pe);
    weft_rma_copy(near, source, bytes);
    return 0;
}

void weft_rma_put_slow(void *dest, const void *source, size_t bytes, int pe, bool nbi,
                       const char *call) {
    WEFT_IN_CALL(call);
    const struct weft_operations *operations = weft_dispatch_of(dest, source, pe);
    int error = operations ? operations->put(dest, source, bytes, pe, nbi)
                           : weft_rma_put_near(dest, source, bytes, pe);
    if (error)
        weft_misuse_access(call, "dest", dest, bytes, pe);
}

int weft_rma_get_near(void *dest, const void *source, size_t bytes, int pe) {
    const void *near = weft_near(source, bytes, pe);
    if (!near)
        return weft_near_error(bytes, pe);
    weft_rma_copy(dest, near, bytes);
    return 0;
}

void weft_rma_get_slow(void *dest, const void *source, size_t bytes, int pe, bool nbi,
                       const char *call) {
    WEFT_IN_CALL(call);
    const struct weft_operations *operations = weft_dispatch_of(source, dest, pe);
    int error = operations ? operations->get(dest, source, bytes, pe, nbi)
                           : weft_rma_get_near(dest, source, bytes, pe);
    if (error)
        weft_misuse_access(call, "source", source, bytes, pe);
    if (!operations)
        weft_poll_fetched(source, dest, bytes, pe, call);
}

void weft_rma_put_word_slow(void *dest, uint64_t word, size_t bytes, int pe, const char *call) {
    void *near = weft_dispatch_of(dest, NULL, pe) ? NULL : weft_near(dest, bytes, pe);
    if (near)
        weft_rma_store(near, word, bytes);
    else
        weft_rma_put_slow(dest, &word, bytes, pe, false, call);
}

uint64_t weft_rma_get_word_slow(const void *source, size_t bytes, int pe, const char *call) {
    const void *near = weft_dispatch_of(source, NULL, pe) ? NULL : weft_near(source, bytes, pe);
    uint64_t word = near ? weft_rma_load(near, bytes) : 0;
    if (!near)
        weft_rma_get_slow(&word, source, bytes, pe, false, call);
    return weft_job.oversubscribed ? weft_poll_look(source, pe, word, call) : word;
}

void weft_rma_signal_slow(uint64_t *sig_addr, uint64_t signal, enum weft_signal_op op, int pe,
                          const char *call) {
    WEFT_IN_CALL(call);
    const struct weft_operations *operations = weft_dispatch_of(sig_addr, NULL, pe);
    if (!operations && weft_near(sig_addr, sizeof *sig_addr, pe))
        weft_rma_signal(sig_addr, signal, op, pe, call);
    else if (!operations || operations->signal(sig_addr, signal, op, pe) != 0)
        weft_misuse_access(call, "sig_addr", sig_addr, sizeof *sig_addr, pe);
}

/* Returns the table that performs both the signal and the payload: that of the memory space if
 * either is in it, otherwise that of the PE. */
static const struct weft_operations *announced_operations(const struct weft_put_signal *put,
                                                          int pe) {
    const struct weft_operations *operations = weft_dispatch_of_memory(put->sig_addr, NULL);
    return operations || put->bytes == 0 ? weft_dispatch_of(put->sig_addr, NULL, pe)
                                         : weft_dispatch_of(put->dest, put->source, pe);
}

void weft_rma_put_signal(const struct weft_put_signal *put, int pe, const char *call) {
    const struct weft_operations *operations = announced_operations(put, pe);
    if (operations) {
        WEFT_IN_CALL(call);
        if (operations->put_signal(put, pe) == 0)
            return;
    }
    if (!weft_dispatch_symmetric(put->sig_addr, sizeof *put->sig_addr, pe))
        weft_misuse_access(call, "sig_addr", put->sig_addr, sizeof *put->sig_addr, pe);
    if (operations)
        weft_misuse_access(call, "dest", put->dest, put->bytes, pe);
    weft_rma_put(put->dest, put->source, put->bytes, pe, false, call);
    weft_rma_signal(put->sig_addr, put->signal, put->op, pe, call);
}
