/* SPDX-License-Identifier: BSD-3-Clause */
/* Put, get and signals. The near path is one copy with nothing in between.
 *
 * All return 0, or -ERANGE when there is no such PE, or -EFAULT when a symmetric argument is not
 * symmetric over its whole length; nothing has been touched then. PEs are world numbers. An empty
 * access is 0 and touches nothing, whatever its pointers are. */
#ifndef WEFT_CORE_RMA_H
#define WEFT_CORE_RMA_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "base/alias.h"
#include "core/job.h"
#include "core/window.h"

#define WEFT_RMA_INLINE static inline __attribute__((always_inline))

/* Why weft_near gave NULL: -ERANGE, -EFAULT, or 0 for an empty access, which may name anything. */
WEFT_RMA_INLINE int weft_near_error(size_t bytes, int pe) {
    if (bytes == 0)
        return 0;
    return pe < 0 || pe >= weft_job.npes ? -ERANGE : -EFAULT;
}

/* Single elements are one load and one store, and cost no call. */
WEFT_RMA_INLINE void weft_rma_copy(void *dest, const void *source, size_t bytes) {
    if (__builtin_expect(bytes == 8, 1))
        memcpy(dest, source, 8);
    else if (bytes == 4)
        memcpy(dest, source, 4);
    else if (bytes == 16)
        memcpy(dest, source, 16);
    else if (bytes == 2)
        memcpy(dest, source, 2);
    else if (bytes == 1)
        memcpy(dest, source, 1);
    else if (bytes != 0)
        memcpy(dest, source, bytes);
}

/* dest on `pe` <- source here. */
WEFT_RMA_INLINE int weft_rma_put(void *dest, const void *source, size_t bytes, int pe) {
    void *near = weft_near(dest, bytes, pe);
    if (__builtin_expect(!near, 0))
        return weft_near_error(bytes, pe);
    weft_rma_copy(near, source, bytes);
    return 0;
}

/* dest here <- source on `pe`. */
WEFT_RMA_INLINE int weft_rma_get(void *dest, const void *source, size_t bytes, int pe) {
    const void *near = weft_near(source, bytes, pe);
    if (__builtin_expect(!near, 0))
        return weft_near_error(bytes, pe);
    weft_rma_copy(dest, near, bytes);
    return 0;
}

/* *to = *from for a naturally aligned element; up to 8 bytes whole, also for threads that look at
 * the word meanwhile. */
#define WEFT_ELEMENT(BITS)                                                                  \
    case BITS / 8:                                                                          \
        __atomic_store_n((weft_alias##BITS *)to,                                            \
                         __atomic_load_n((const weft_alias##BITS *)from, __ATOMIC_RELAXED), \
                         __ATOMIC_RELAXED);                                                 \
        break;
WEFT_RMA_INLINE void weft_rma_copy_element(void *to, const void *from, size_t bytes) {
    switch (bytes) {
        WEFT_ELEMENT(8)
        WEFT_ELEMENT(16)
        WEFT_ELEMENT(32)
        WEFT_ELEMENT(64)
    default:
        memcpy(to, from, bytes);
    }
}
#undef WEFT_ELEMENT

/* Put and get of one element. */
WEFT_RMA_INLINE int weft_rma_put_element(void *dest, const void *value, size_t bytes, int pe) {
    void *near = weft_near(dest, bytes, pe);
    if (__builtin_expect(!near, 0))
        return weft_near_error(bytes, pe);
    weft_rma_copy_element(near, value, bytes);
    return 0;
}

WEFT_RMA_INLINE int weft_rma_get_element(void *value, const void *source, size_t bytes, int pe) {
    const void *near = weft_near(source, bytes, pe);
    if (__builtin_expect(!near, 0))
        return weft_near_error(bytes, pe);
    weft_rma_copy_element(value, near, bytes);
    return 0;
}

/* nblocks blocks of bsize elements; blocks start dest_stride elements apart at the destination
 * and source_stride elements apart at the source. Strides may be negative or zero. */
struct weft_strided {
    size_t elem_bytes, bsize, nblocks;
    ptrdiff_t dest_stride, source_stride;
};
/* Where the blocks of one side whose first is at `first` lie, from the lowest to the highest byte.
 * False when no address space is that large. */
bool weft_rma_strided_extent(const struct weft_strided *shape, const void *first, ptrdiff_t stride,
                             const void **lowest, size_t *bytes);

int weft_rma_put_strided(void *dest, const void *source, const struct weft_strided *shape, int pe);
int weft_rma_get_strided(void *dest, const void *source, const struct weft_strided *shape, int pe);

/* Copies nblocks blocks of `bytes`, which begin `to` and `from` bytes apart. Both sides are here.
 */
void weft_rma_copy_blocks(void *dest, ptrdiff_t to, const void *source, ptrdiff_t from,
                          size_t bytes, size_t nblocks);

enum weft_signal_op { WEFT_SIGNAL_SET, WEFT_SIGNAL_ADD };

/* Sets the word on `pe` or adds to it, behind all earlier stores of this thread. */
WEFT_RMA_INLINE int weft_rma_signal(uint64_t *sig_addr, uint64_t signal, enum weft_signal_op op,
                                    int pe) {
    uint64_t *near = weft_near(sig_addr, sizeof *sig_addr, pe);
    if (__builtin_expect(!near, 0))
        return weft_near_error(sizeof *sig_addr, pe);
    if (op == WEFT_SIGNAL_SET)
        __atomic_store_n(near, signal, __ATOMIC_RELEASE);
    else
        __atomic_fetch_add(near, signal, __ATOMIC_RELEASE);
    return 0;
}

/* A put, and a signal that shows that it has arrived. An empty put signals all the same. */
int weft_rma_put_signal(void *dest, const void *source, size_t bytes, uint64_t *sig_addr,
                        uint64_t signal, enum weft_signal_op op, int pe);

#endif
