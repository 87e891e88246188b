/* SPDX-License-Identifier: BSD-3-Clause */
/* A model of atomic operations on a word. */
#ifndef TESTS_API_AMO_MODEL_H
#define TESTS_API_AMO_MODEL_H

#include <stdint.h>

/* Extended operations first, then those of all AMO types, then the bitwise ones. */
enum amo_operation { FETCH, SET, SWAP, COMPARE_SWAP, INC, ADD, AND, OR, XOR, AMO_OPERATIONS };

/* Returns the resulting word, of which only the type's bits count. */
static inline uint64_t amo_result(enum amo_operation operation, uint64_t word, uint64_t cond,
                                  uint64_t value) {
    switch (operation) {
    case FETCH:
        return word;
    case SET:
    case SWAP:
        return value;
    case COMPARE_SWAP:
        return word == cond ? value : word;
    case INC:
        return word + 1;
    case ADD:
        return word + value;
    case AND:
        return word & value;
    case OR:
        return word | value;
    default:
        return word ^ value;
    }
}

#endif
