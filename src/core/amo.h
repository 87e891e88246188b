/* SPDX-License-Identifier: BSD-3-Clause */
/* Atomics on a peer's word: one instruction of this processor.
 *
 * The specification orders atomics by fence, quiet and waits alone. Here a fetch also acquires and
 * a set also releases, because programs poll with them and it is free on x86; neither is a locked
 * instruction. A value that nobody wants back makes the cheaper, non-fetching instruction. */
#ifndef WEFT_CORE_AMO_H
#define WEFT_CORE_AMO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "core/rma.h"

enum weft_amo_op {
    WEFT_AMO_FETCH,
    WEFT_AMO_SET,
    WEFT_AMO_SWAP,
    WEFT_AMO_COMPARE_SWAP,
    WEFT_AMO_ADD,
    WEFT_AMO_AND,
    WEFT_AMO_OR,
    WEFT_AMO_XOR,
};

/* The word is the user's int, double, ... */
typedef uint32_t __attribute__((may_alias)) weft_amo_word32;
typedef uint64_t __attribute__((may_alias)) weft_amo_word64;

#define WEFT_AMO_INLINE static inline __attribute__((always_inline))

/* The word before; unspecified for WEFT_AMO_SET. */
WEFT_AMO_INLINE uint32_t weft_amo_apply32(enum weft_amo_op op, weft_amo_word32 *word,
                                          uint32_t value, uint32_t cond) {
    switch (op) {
    case WEFT_AMO_FETCH: return __atomic_load_n(word, __ATOMIC_ACQUIRE);
    case WEFT_AMO_SET: __atomic_store_n(word, value, __ATOMIC_RELEASE); return value;
    case WEFT_AMO_SWAP: return __atomic_exchange_n(word, value, __ATOMIC_ACQ_REL);
    case WEFT_AMO_COMPARE_SWAP:
        __atomic_compare_exchange_n(word, &cond, value, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
        return cond;
    case WEFT_AMO_ADD: return __atomic_fetch_add(word, value, __ATOMIC_ACQ_REL);
    case WEFT_AMO_AND: return __atomic_fetch_and(word, value, __ATOMIC_ACQ_REL);
    case WEFT_AMO_OR: return __atomic_fetch_or(word, value, __ATOMIC_ACQ_REL);
    case WEFT_AMO_XOR: return __atomic_fetch_xor(word, value, __ATOMIC_ACQ_REL);
    }
    __builtin_unreachable();
}

WEFT_AMO_INLINE uint64_t weft_amo_apply64(enum weft_amo_op op, weft_amo_word64 *word,
                                          uint64_t value, uint64_t cond) {
    switch (op) {
    case WEFT_AMO_FETCH: return __atomic_load_n(word, __ATOMIC_ACQUIRE);
    case WEFT_AMO_SET: __atomic_store_n(word, value, __ATOMIC_RELEASE); return value;
    case WEFT_AMO_SWAP: return __atomic_exchange_n(word, value, __ATOMIC_ACQ_REL);
    case WEFT_AMO_COMPARE_SWAP:
        __atomic_compare_exchange_n(word, &cond, value, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
        return cond;
    case WEFT_AMO_ADD: return __atomic_fetch_add(word, value, __ATOMIC_ACQ_REL);
    case WEFT_AMO_AND: return __atomic_fetch_and(word, value, __ATOMIC_ACQ_REL);
    case WEFT_AMO_OR: return __atomic_fetch_or(word, value, __ATOMIC_ACQ_REL);
    case WEFT_AMO_XOR: return __atomic_fetch_xor(word, value, __ATOMIC_ACQ_REL);
    }
    __builtin_unreachable();
}

/* Operands and result are as wide as the word, 4 or 8 bytes, and may be integers or reals. */
struct weft_amo {
    size_t bytes;
    const void *value; /* NULL where the operation has none */
    const void *cond;  /* compare-and-swap: swap only where the word is this */
    void *fetched;     /* receives the word before; NULL: nobody wants it */
};

/* dest on `pe` <- op. Results as in core/rma.h. With constant arguments this is one instruction
 * behind the bounds check. */
WEFT_AMO_INLINE int weft_amo(enum weft_amo_op op, void *dest, struct weft_amo amo, int pe) {
    void *near = weft_near(dest, amo.bytes, pe);
    if (__builtin_expect(!near, 0))
        return weft_near_error(dest, amo.bytes, pe);
    uint64_t value = 0, cond = 0, before;
    if (amo.value)
        memcpy(&value, amo.value, amo.bytes);
    if (amo.cond)
        memcpy(&cond, amo.cond, amo.bytes);
    if (amo.bytes == sizeof(uint32_t))
        before = weft_amo_apply32(op, near, (uint32_t)value, (uint32_t)cond);
    else
        before = weft_amo_apply64(op, near, value, cond);
    if (amo.fetched)
        memcpy(amo.fetched, &before, amo.bytes);
    return 0;
}

#endif
