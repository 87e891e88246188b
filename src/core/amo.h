/* SPDX-License-Identifier: BSD-3-Clause */
/* Atomics on a peer's word: one instruction of this processor.
 *
 * The specification orders atomics by fence, quiet and waits alone. Here a fetch also acquires and
 * a set also releases, because programs poll with them and it is free on x86; neither is a locked
 * instruction. A value that nobody wants back makes the cheaper, non-fetching instruction. */
#ifndef WEFT_CORE_AMO_H
#define WEFT_CORE_AMO_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "base/alias.h"
#include "base/amo_op.h"
#include "core/window.h"

#define WEFT_AMO_INLINE static inline __attribute__((always_inline))

/* The word before, `bytes` wide; unspecified for WEFT_AMO_SET. */
WEFT_AMO_INLINE uint64_t weft_amo_apply(enum weft_amo_op op, size_t bytes, void *word,
                                        uint64_t value, uint64_t cond) {
    bool narrow = bytes == sizeof(uint32_t);
    weft_alias32 *word32 = word, value32 = (uint32_t)value, cond32 = (uint32_t)cond;
    weft_alias64 *word64 = word;
    switch (op) {
    case WEFT_AMO_FETCH:
        return narrow ? __atomic_load_n(word32, __ATOMIC_ACQUIRE)
                      : __atomic_load_n(word64, __ATOMIC_ACQUIRE);
    case WEFT_AMO_SET:
        if (narrow)
            __atomic_store_n(word32, value32, __ATOMIC_RELEASE);
        else
            __atomic_store_n(word64, value, __ATOMIC_RELEASE);
        return 0; /* not value: gcc 12 then has `value` and all results in one register */
    case WEFT_AMO_SWAP:
        return narrow ? __atomic_exchange_n(word32, value32, __ATOMIC_ACQ_REL)
                      : __atomic_exchange_n(word64, value, __ATOMIC_ACQ_REL);
    case WEFT_AMO_COMPARE_SWAP:
        if (narrow)
            __atomic_compare_exchange_n(word32, &cond32, value32, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE);
        else
            __atomic_compare_exchange_n(word64, &cond, value, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE);
        return narrow ? cond32 : cond;
    case WEFT_AMO_ADD:
        return narrow ? __atomic_fetch_add(word32, value32, __ATOMIC_ACQ_REL)
                      : __atomic_fetch_add(word64, value, __ATOMIC_ACQ_REL);
    case WEFT_AMO_AND:
        return narrow ? __atomic_fetch_and(word32, value32, __ATOMIC_ACQ_REL)
                      : __atomic_fetch_and(word64, value, __ATOMIC_ACQ_REL);
    case WEFT_AMO_OR:
        return narrow ? __atomic_fetch_or(word32, value32, __ATOMIC_ACQ_REL)
                      : __atomic_fetch_or(word64, value, __ATOMIC_ACQ_REL);
    case WEFT_AMO_XOR:
        return narrow ? __atomic_fetch_xor(word32, value32, __ATOMIC_ACQ_REL)
                      : __atomic_fetch_xor(word64, value, __ATOMIC_ACQ_REL);
    }
    __builtin_unreachable();
}

/* The word at dest on `pe`, a world number. All operands are `bytes` wide, 4 or 8, integers or
 * reals: value, NULL where the operation has none; cond, for compare-and-swap alone; fetched
 * receives the word before, NULL: nobody wants it. 0, or -EFAULT when there is no such PE or dest
 * is no symmetric word; nothing has been touched then. With constant arguments this is one
 * instruction behind the bounds check. */
WEFT_AMO_INLINE int weft_amo(enum weft_amo_op op, size_t bytes, void *dest, const void *value,
                             const void *cond, void *fetched, int pe) {
    void *near = weft_near(dest, bytes, pe);
    if (__builtin_expect(!near, 0))
        return -EFAULT;
    uint64_t value_bits = 0, cond_bits = 0;
    if (value)
        memcpy(&value_bits, value, bytes);
    if (cond)
        memcpy(&cond_bits, cond, bytes);
    uint64_t before = weft_amo_apply(op, bytes, near, value_bits, cond_bits);
    if (fetched)
        memcpy(fetched, &before, bytes);
    return 0;
}

#endif
