/* SPDX-License-Identifier: BSD-3-Clause */
/* Atomics, the same for processors (core/amo.h) and for kernels (transport/word.cu). */
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

/* An atomic on a word of `bytes`, 4 or 8; integers and reals alike are bits. */
struct weft_amo {
    enum weft_amo_op op;
    size_t bytes;
    void *dest;
    uint64_t value, cond;
    void *fetch; /* where the word before goes; NULL: nobody wants it */
};

#endif
