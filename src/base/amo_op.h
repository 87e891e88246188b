/* SPDX-License-Identifier: BSD-3-Clause */
/* The atomic operations on a word, by the same numbers for processors (core/amo.h) and for kernels
 * (transport/word.cu). */
#ifndef WEFT_BASE_AMO_OP_H
#define WEFT_BASE_AMO_OP_H

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

#endif
