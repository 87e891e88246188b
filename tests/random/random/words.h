/* SPDX-License-Identifier: BSD-3-Clause */
/* The words at the beginning of static data and of heap block 0.
 *
 * A crowd is a word that all PEs change at once, and an account beside it. In what way they do is
 * chosen for an epoch, so that the end is known although the order is not. A flag is a word that
 * one PE raises and its owner waits for; eight of one type are a group. */
#ifndef TESTS_RANDOM_WORDS_H
#define TESTS_RANDOM_WORDS_H

#include "memory.h"
#include "order.h"
#include "routines.h"

enum { CROWDS = 64, LOCKS = 3, GROUPS = 8, GROUP_FLAGS = 8, CANDIDATES_MAX = 48 };

/* SUM: adds. BITS: every PE has its own bits, and one of and, or, xor. TICKET: increments; the
 * account is the sum of what was fetched. LOCKED: added to by get and put, under a lock.
 * EXCHANGE: swaps; word plus account is known. RACE: sets; the end is one of the values. */
enum crowd_kind { SUM, BITS, TICKET, LOCKED, EXCHANGE, RACE, CROWD_KINDS };

struct crowd {
    enum crowd_kind kind;
    uint8_t row;           /* of amo_routines */
    uint8_t ctxs[PES_MAX]; /* of a PE's operations that may be under way, one bit each */
    uint8_t ncandidates;
    uint64_t candidates[CANDIDATES_MAX];
};

struct flag {
    bool raised;
    uint32_t waited_at; /* by its owner, for the last time */
    uint64_t before;    /* it was raised */
    struct snapshot from;
};

struct flag_group {
    uint8_t row; /* of wait_routines */
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

/* The model's words, `bytes` wide. */
uint64_t word_get(int pe, uint32_t offset, uint32_t bytes);
void word_set(int pe, uint32_t offset, uint32_t bytes, uint64_t value);

static inline uint64_t word_mask(uint32_t bytes) {
    return bytes == 8 ? UINT64_MAX : (UINT64_C(1) << (bytes * 8)) - 1;
}

/* The bits of a word that are `pe`'s. */
uint64_t crowd_bits(int pe);

/* What `pe` does to a crowd's word with its operation `repeat` of op->nblocks: the operation of
 * the model, and the operand. */
enum amo_operation crowd_operation(const struct op *op, int pe);
uint64_t crowd_operand(const struct op *op, int pe, uint32_t repeat);

bool crowd_has_candidate(const struct crowd *crowd, uint64_t value);

/* How to wait for the included flags of a group, so that the wait ends when all have been raised,
 * or, if they are down, at once; a test of such flags may also fail. Random, from `choice`. */
struct wait_plan {
    int cmp;
    bool vector;
    int status[GROUP_FLAGS];
    unsigned char values[GROUP_FLAGS * 8];
    bool met[GROUP_FLAGS]; /* as things stand in the model */
};
struct wait_plan wait_plan(const struct op *op);

#endif
