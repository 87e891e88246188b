/* SPDX-License-Identifier: BSD-3-Clause */
/* Put, get and signals. The near path is a single copy. If memory is not near, the cold branch ends
 * in the slow path, which uses an operation table (core/dispatch.h) or reports the misuse. `call`
 * is the public name, a constant.
 *
 * PEs are world numbers. An empty access touches no memory, whatever its pointers are. */
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

/* Copies by this processor. Returns 0, -ERANGE if there is no such PE, or -EFAULT if its memory is
 * not near. */
int weft_rma_put_near(void *dest, const void *source, size_t bytes, int pe);
int weft_rma_get_near(void *dest, const void *source, size_t bytes, int pe);

/* The slow path: for memory that is not near, and for calls that cannot take the fast path because
 * their local side may be GPU memory. */
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

/* Returns why weft_near returned NULL: -ERANGE, -EFAULT, or 0 for an empty access, whose address
 * does not matter. */
WEFT_RMA_INLINE int weft_near_error(size_t bytes, int pe) {
    if (bytes == 0)
        return 0;
    return pe < 0 || pe >= weft_job.npes ? -ERANGE : -EFAULT;
}

/* Single elements take one load and one store, without a call. */
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

/* Copies from `source` here to `dest` on `pe`. A near copy is complete on return, with or without
 * `nbi`. */
WEFT_RMA_INLINE void weft_rma_put(void *dest, const void *source, size_t bytes, int pe, bool nbi,
                                  const char *call) {
    void *near = weft_near(dest, bytes, pe);
    if (__builtin_expect(!near, 0))
        weft_rma_put_slow(dest, source, bytes, pe, nbi, call);
    else
        weft_rma_copy(near, source, bytes);
}

/* Copies from `source` on `pe` to `dest` here. */
WEFT_RMA_INLINE void weft_rma_get(void *dest, const void *source, size_t bytes, int pe, bool nbi,
                                  const char *call) {
    const void *near = weft_near(source, bytes, pe);
    if (__builtin_expect(!near, 0))
        weft_rma_get_slow(dest, source, bytes, pe, nbi, call);
    else
        weft_rma_copy(dest, near, bytes);
}

/* Naturally aligned elements of at most this many bytes are words: each is stored and loaded whole,
 * for threads that access it meanwhile. */
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

/* Put and get of a single word. */
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

/* Returns the bytes of all blocks, or SIZE_MAX if they are more than any object has. */
static inline size_t weft_rma_strided_bytes(const struct weft_strided *shape) {
    size_t bytes;
    bool overflows = __builtin_mul_overflow(shape->bsize, shape->nblocks, &bytes) ||
                     __builtin_mul_overflow(bytes, shape->elem_bytes, &bytes);
    return overflows ? SIZE_MAX : bytes;
}

/* Finds the range from the lowest to the highest byte of one side's blocks, the first of which is
 * at `first`. Returns false if it exceeds the address space. */
bool weft_rma_strided_extent(const struct weft_strided *shape, const void *first, ptrdiff_t stride,
                             const void **lowest, size_t *bytes);

void weft_rma_put_strided(void *dest, const void *source, const struct weft_strided *shape, int pe,
                          const char *call);
void weft_rma_get_strided(void *dest, const void *source, const struct weft_strided *shape, int pe,
                          const char *call);

/* Copies blocks within this process's memory. */
void weft_rma_copy_strided(const struct weft_strided_copy *copy);

/* Sets the word on `pe` or adds to it, after all earlier stores of this thread. */
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
