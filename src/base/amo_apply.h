/* SPDX-License-Identifier: BSD-3-Clause */
/* Applies an atomic operation with this processor, to a word of its own PE or of a near one. */
#ifndef WEFT_BASE_AMO_APPLY_H
#define WEFT_BASE_AMO_APPLY_H

#include <stdbool.h>
#include "base/alias.h"
#include "base/amo.h"

/* Returns the word's old value, `bytes` wide; unspecified for WEFT_AMO_SET. */
static inline __attribute__((always_inline)) uint64_t weft_amo_apply(enum weft_amo_op op,
                                                                     size_t bytes, void *word,
                                                                     uint64_t value,
                                                                     uint64_t cond) {
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

#endif
