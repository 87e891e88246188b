/* SPDX-License-Identifier: BSD-3-Clause */
/* Put, get and signals. The near path is one copy with nothing in between; what is not near goes,
 * at the end of the cold branch, to its operations (core/dispatch.h), or to the line that says what
 * is wrong with it. `call` is the public name, a constant.
 *
 * PEs are world numbers. An empty access touches nothing, whatever its pointers are. */
#ifndef WEFT_CORE_RMA_H
#define WEFT_CORE_RMA_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "base/alias.h"
#include "job/poll.h"
#include "core/dispatch.h"
#include "core/misuse.h"

#define WEFT_RMA_INLINE static inline __attribute__((always_inline))

/* A copy by this processor: 0, -ERANGE when there is no such PE, or -EFAULT when its memory is not
 * near. */
int weft_rma_put_near(void *dest, const void *source, size_t bytes, int pe);
int weft_rma_get_near(void *dest, const void *source, size_t bytes, int pe);

/* The same accesses for whatever is not near, and for all of calls that cannot know, since their
 * local side may be a GPU's. */
WEFT_COLD void weft_rma_put_slow(void *dest, const void *source, size_t bytes, int pe, bool nbi,
                                 const char *call);
WEFT_COLD void weft_rma_get_slow(void *dest, const void *source, size_t bytes, int pe, bool nbi,
                                 const char *call);
WEFT_COLD void weft_rma_put_word_slow(void *dest, uint64_t word, size_t bytes, int pe,
                                      const char *call);
WEFT_COLD uint64_t weft_rma_get_word_slow(const void *source, size_t bytes, int pe,
                                          const char *call);
WEFT_COLD void weft_rma_signal_slow(uint64_t *sig_addr, uint64_t signal, enum weft_signal_op op,
                                    int pe, const char *call);

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

/* dest on `pe` <- source here. A near copy is complete when it is made, `nbi` or not. */
WEFT_RMA_INLINE void weft_rma_put(void *dest, const void *source, size_t bytes, int pe, bool nbi,
                                  const char *call) {
    void *near = weft_near(dest, bytes, pe);
    if (__builtin_expect(!near, 0))
        weft_rma_put_slow(dest, source, bytes, pe, nbi, call);
    else
        weft_rma_copy(near, source, bytes);
}

/* dest here <- source on `pe`. */
WEFT_RMA_INLINE void weft_rma_get(void *dest, const void *source, size_t bytes, int pe, bool nbi,
                                  const char *call) {
    const void *near = weft_near(source, bytes, pe);
    if (__builtin_expect(!near, 0))
        weft_rma_get_slow(dest, source, bytes, pe, nbi, call);
    else
        weft_rma_copy(dest, near, bytes);
}

/* Elements of at most this many bytes, naturally aligned, are words: they are stored and loaded
 * whole, also for threads that look at them meanwhile. */
#define WEFT_RMA_WORD sizeof(uint64_t)

#define WEFT_RMA_STORE(BITS)                                                              \
    case BITS / 8:                                                                        \
        __atomic_store_n((weft_alias##BITS *)to, (uint##BITS##_t)word, __ATOMIC_RELAXED); \
        break;
WEFT_RMA_INLINE void weft_rma_store(void *to, uint64_t word, size_t bytes) {
    switch (bytes) {
        WEFT_RMA_STORE(8)
        WEFT_RMA_STORE(16)
        WEFT_RMA_STORE(32)
        WEFT_RMA_STORE(64)
    }
}
#undef WEFT_RMA_STORE

#define WEFT_RMA_LOAD(BITS) \
    case BITS / 8:          \
        return __atomic_load_n((const weft_alias##BITS *)from, __ATOMIC_RELAXED);
WEFT_RMA_INLINE uint64_t weft_rma_load(const void *from, size_t bytes) {
    switch (bytes) {
        WEFT_RMA_LOAD(8)
        WEFT_RMA_LOAD(16)
        WEFT_RMA_LOAD(32)
        WEFT_RMA_LOAD(64)
    }
    return 0;
}
#undef WEFT_RMA_LOAD

/* Put and get of one word. */
WEFT_RMA_INLINE void weft_rma_put_word(void *dest, uint64_t word, size_t bytes, int pe,
                                       const char *call) {
    void *near = weft_near(dest, bytes, pe);
    if (__builtin_expect(!near, 0))
        weft_rma_put_word_slow(dest, word, bytes, pe, call);
    else
        weft_rma_store(near, word, bytes);
}

WEFT_RMA_INLINE uint64_t weft_rma_get_word(const void *source, size_t bytes, int pe,
                                           const char *call) {
    const void *near = weft_near(source, bytes, pe);
    if (__builtin_expect(!near, 0))
        return weft_rma_get_word_slow(source, bytes, pe, call);
    uint64_t word = weft_rma_load(near, bytes);
    if (__builtin_expect(weft_job.oversubscribed, 0))
        return weft_poll_look(source, pe, word, call);
    return word;
}

/* Returns the bytes of all blocks, or more than any object has. */
static inline size_t weft_rma_strided_bytes(const struct weft_strided *shape) {
    size_t bytes;
    bool overflows = __builtin_mul_overflow(shape->bsize, shape->nblocks, &bytes) ||
                     __builtin_mul_overflow(bytes, shape->elem_bytes, &bytes);
    return overflows ? SIZE_MAX : bytes;
}

/* Where the blocks of one side whose first is at `first` lie, from the lowest to the highest byte.
 * False when no address space is that large. */
bool weft_rma_strided_extent(const struct weft_strided *shape, const void *first, ptrdiff_t stride,
                             const void **lowest, size_t *bytes);

void weft_rma_put_strided(void *dest, const void *source, const struct weft_strided *shape, int pe,
                          const char *call);
void weft_rma_get_strided(void *dest, const void *source, const struct weft_strided *shape, int pe,
                          const char *call);

/* Both sides are here. */
void weft_rma_copy_strided(const struct weft_strided_copy *copy);

/* Sets the word on `pe` or adds to it, behind all earlier stores of this thread. */
WEFT_RMA_INLINE void weft_rma_signal(uint64_t *sig_addr, uint64_t signal, enum weft_signal_op op,
                                     int pe, const char *call) {
    uint64_t *near = weft_near(sig_addr, sizeof *sig_addr, pe);
    if (__builtin_expect(!near, 0))
        weft_rma_signal_slow(sig_addr, signal, op, pe, call);
    else if (op == WEFT_SIGNAL_SET)
        __atomic_store_n(near, signal, __ATOMIC_RELEASE);
    else
        __atomic_fetch_add(near, signal, __ATOMIC_RELEASE);
}

void weft_rma_put_signal(const struct weft_put_signal *put, int pe, const char *call);

#endif
