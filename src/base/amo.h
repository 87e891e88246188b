/* SPDX-License-Identifier: BSD-3-Clause */
/* Atomic operations on a word, for processors (core/amo.h) and for kernels (transport/word.cu). */
#ifndef WEFT_BASE_AMO_H
#define WEFT_BASE_AMO_H

#include <stddef.h>
#include <stdint.h>

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

/* An atomic operation on a word of `bytes`, 4 or 8. Integers and floating-point numbers are passed
 * as bits. */
struct weft_amo {
    enum weft_amo_op op;
    size_t bytes;
    void *dest;
    uint64_t value, cond;
    void *fetch; /* receives the word's old value; may be NULL */
};

#endif
