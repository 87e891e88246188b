/* SPDX-License-Identifier: BSD-3-Clause */
/* The symmetric memory of all PEs in the model, and its real addresses on this PE.
 *
 *   offset 0        STATIC_BYTES            + BLOCK_BYTES       + 2 BLOCK_BYTES
 *   | static data   | heap block 0, lasting | heap block 1      | ... BLOCKS of them
 *   | words | plain | words | plain         | plain up to its size
 *
 * The words are crowds and flags (words.h), all other memory is plain. Of a heap block that is
 * larger than BLOCK_BYTES the model knows only the beginning. */
#ifndef TESTS_RANDOM_MEMORY_H
#define TESTS_RANDOM_MEMORY_H

#include <stddef.h>
#include "api/model.h"
#include "op.h"

enum {
    STATIC_BYTES = 48 << 10,
    BLOCK_BYTES = 24 << 10,
    BLOCKS_MAX = 8,
    SPACE = STATIC_BYTES + BLOCKS_MAX * BLOCK_BYTES,
    WORDS_BYTES = 1024,
    POOL_BYTES = 64 << 10,
    RUN_BYTES_MAX = 10 << 10, /* of one side of an operation */
};

struct block {
    void *real;
    uint32_t known; /* bytes that the model knows; 0: not allocated */
};

extern struct block blocks[BLOCKS_MAX];
extern unsigned char *model[PES_MAX];
extern unsigned char pool[POOL_BYTES]; /* private, constant, the same on all PEs */
extern struct random dice;             /* the program's; the same sequence on all PEs */

static inline uint32_t below(uint32_t limit) {
    return (uint32_t)(((random_next(&dice) >> 32) * limit) >> 32);
}

static inline bool coin(uint32_t one_in) {
    return below(one_in) == 0;
}

/* Makes pool and model; collective. */
void memory_open(uint64_t seed);

/* Begins an epoch: allocates block 0 and fills the model with data from the dice. */
void memory_begin(void);

/* Ends an epoch: frees all blocks. */
void memory_end(void);

static inline uint32_t block_offset(int block) {
    return (uint32_t)(STATIC_BYTES + block * BLOCK_BYTES);
}

/* Returns the address on this PE. */
void *memory_real(uint32_t offset);

/* memory_fill makes new contents of [offset, offset + bytes) in the model of every PE; memory_load
 * stores them in this PE's real memory. */
void memory_fill(uint32_t offset, uint32_t bytes);
void memory_load(uint32_t offset, uint32_t bytes);

/* Finds a plain place for `bytes` on `pe`; prefers places that were used lately. */
bool memory_place(int pe, uint32_t bytes, uint32_t alignment, uint32_t *offset);
void memory_used(int pe, uint32_t offset);

/* Returns the first offset from `begin` where this PE's memory differs from the model, or SPACE. */
uint32_t memory_differs(uint32_t begin, uint32_t end);

/* Returns the end of the known memory that contains `offset`. */
uint32_t memory_end_of(uint32_t offset);

#endif
