/* SPDX-License-Identifier: BSD-3-Clause */
/* The words at the beginning of static data and of heap block 0.
 *
 * A crowd is a word that all PEs change at once, with an account beside it. The kind of change is
 * chosen for an epoch, so that the final value is known although the order is not. A flag is a word
 * that one PE raises and its owner waits for; eight flags of one type are a group. */
#ifndef TESTS_RANDOM_WORDS_H
#define TESTS_RANDOM_WORDS_H

#include "memory.h"
#include "order.h"
#include "routines.h"

enum { CROWDS = 64, LOCKS = 3, GROUPS = 8, GROUP_FLAGS = 8, CANDIDATES_MAX = 48 };

/* SUM: adds. BITS: every PE has its own bits, changed by and, or and xor. TICKET: increments; the
 * account is the sum of the fetched values. LOCKED: added to by get and put, under a lock.
 * EXCHANGE: swaps; the sum of word and account is known. RACE: sets; the final value is any of
 * these. */
enum crowd_kind { SUM, BITS, TICKET, LOCKED, EXCHANGE, RACE, CROWD_KINDS };

struct crowd {
    enum crowd_kind kind;
    uint8_t row;           /* index into amo_routines */
    uint8_t ctxs[PES_MAX]; /* of a PE, on which operations may be pending, one bit for each */
    uint8_t ncandidates;
    uint64_t candidates[CANDIDATES_MAX];
};

struct flag {
    bool raised;
    uint32_t waited_at; /* the last wait of its owner */
    uint64_t before;    /* value before it was raised */
    struct snapshot from;
};

struct flag_group {
    uint8_t row; /* index into wait_routines */
    struct flag flags[GROUP_FLAGS];
};

extern struct crowd crowds[PES_MAX][CROWDS];
extern struct flag_group groups[PES_MAX][GROUPS];

/* Chooses kinds, types and first values, in the model. */
void words_begin(void);

static inline uint32_t crowd_offset(int crowd) {
    return (crowd < CROWDS / 2 ? 0 : block_offset(0)) + (uint32_t)(crowd % (CROWDS / 2)) * 16;
}
uint32_t flag_offset(int pe, int group, int flag);

/* Returns the model's word, `bytes` wide. */
uint64_t word_get(int pe, uint32_t offset, uint32_t bytes);
void word_set(int pe, uint32_t offset, uint32_t bytes, uint64_t value);

static inline uint64_t word_mask(uint32_t bytes) {
    return bytes == 8 ? UINT64_MAX : (UINT64_C(1) << (bytes * 8)) - 1;
}

/* Returns the bits of a word that belong to `pe`. */
uint64_t crowd_bits(int pe);

/* Returns the operation of the model, and the operand, for `pe`'s operation `repeat` of op->nblocks
 * on a crowd's word. */
enum amo_operation crowd_operation(const struct op *op, int pe);
uint64_t crowd_operand(const struct op *op, int pe, uint32_t repeat);

bool crowd_has_candidate(const struct crowd *crowd, uint64_t value);

/* How to wait for the included flags of a group, so that the wait ends when all have been raised
 * or, if they are down, immediately; a test of flags that are down may also fail. Random, from
 * `choice`. */
struct wait_plan {
    int cmp;
    bool vector;
    int status[GROUP_FLAGS];
    unsigned char values[GROUP_FLAGS * 8];
    bool met[GROUP_FLAGS]; /* in the model at present */
};
struct wait_plan wait_plan(const struct op *op);

#endif
