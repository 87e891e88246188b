/* SPDX-License-Identifier: BSD-3-Clause */
#include "model.h"
#include <string.h>

unsigned char expected[LANDING_BYTES];

/* A side of a transfer: its first byte, and the distance between blocks, in bytes. */
struct side {
    unsigned char *begin;
    uint32_t stride;
};

static void move(struct side dest, struct side source, uint32_t block_bytes, uint32_t nblocks) {
    for (uint32_t block = 0; block < nblocks; block++)
        memmove(dest.begin + block * dest.stride, source.begin + block * source.stride,
                block_bytes);
}

static void apply_move(const struct op *op) {
    const struct rma_routines *row = &rma_routines[op->row];
    bool gets = op_gets(op), lands = gets && !op->symmetric;
    if (lands && op->actor != me)
        return;
    unsigned char *local = (op->symmetric ? model[op->actor] : gets ? expected : pool) + op->local;
    if (lands)
        memset(local - GUARD, UNTOUCHED, op_local_span(op) + 2 * GUARD);
    struct side there = {model[op->target] + op->remote, (gets ? op->sst : op->dst) * row->bytes};
    struct side here = {local, (gets ? op->dst : op->sst) * row->bytes};
    uint32_t bytes = op->class == ELEMENT ? row->value_bytes : op->bsize * row->bytes;
    move(gets ? here : there, gets ? there : here, bytes, op->nblocks);
    if (op->class == ELEMENT)
        memset((gets ? local : there.begin) + bytes, 0, row->bytes - bytes);
}

static void apply_store(const struct op *op) {
    if (op->verb == STORE_OWN || op->verb == STORE_PTR)
        memcpy(model[op->target] + op->remote, pool + op->local, op->bsize);
}

static uint64_t change(const struct op *op, uint32_t offset, uint32_t bytes,
                       enum amo_operation operation) {
    uint64_t word = word_get(op->target, offset, bytes), mask = word_mask(bytes);
    word_set(op->target, offset, bytes,
             amo_result(operation, word, op->cond & mask, op->value & mask));
    return word;
}

static uint64_t apply_amo(struct op *op) {
    uint32_t bytes = amo_routines[op->row].bytes;
    if (op->bsize)
        op->cond = word_get(op->target, op->remote, bytes);
    uint64_t word = change(op, op->remote, bytes, op->verb);
    if (op->form == NBI && op->actor == me) {
        memset(expected + op->local - GUARD, UNTOUCHED, 2 * GUARD + bytes);
        memcpy(expected + op->local, &word, bytes);
    }
    return word;
}

/* Applies one operation of a crowd's member; the account gets the fetched values of tickets and
 * swaps. */
static uint64_t apply_crowd_once(const struct op *op, int pe, uint32_t repeat) {
    uint32_t bytes = amo_routines[op->row].bytes;
    uint64_t word = word_get(op->target, op->remote, bytes);
    uint64_t operand = crowd_operand(op, pe, repeat) & word_mask(bytes);
    word_set(op->target, op->remote, bytes, amo_result(crowd_operation(op, pe), word, 0, operand));
    if (op->verb == CROWD_TICKET || op->verb == CROWD_CAS || op->verb == CROWD_SWAP)
        word_set(op->target, op->remote + 8, 8, word_get(op->target, op->remote + 8, 8) + word);
    return word;
}

static uint64_t apply_crowd(const struct op *op) {
    uint64_t word = 0;
    for (int pe = 0; pe < npes; pe++)
        for (uint32_t repeat = 0; op->members >> pe & 1 && repeat < op->nblocks; repeat++)
            word = apply_crowd_once(op, pe, repeat);
    return word;
}

/* The word gets the value, the account half of it. */
static void apply_lock(const struct op *op) {
    uint64_t times = (uint64_t)__builtin_popcount(op->members) * op->nblocks;
    word_set(op->target, op->remote, 8, word_get(op->target, op->remote, 8) + times * op->value);
    word_set(op->target, op->remote + 8, 8,
             word_get(op->target, op->remote + 8, 8) + times * (op->value / 2));
}

/* Every operation that raises a flag changes it. */
static uint64_t apply_flag(struct op *op, enum amo_operation operation) {
    struct flag *flag = &groups[op->target][op->team].flags[op->slot];
    uint32_t offset = flag_offset(op->target, op->team, op->slot);
    uint32_t bytes = wait_routines[groups[op->target][op->team].row].bytes;
    uint64_t word = word_get(op->target, offset, bytes);
    if (amo_result(operation, word, 0, op->value & word_mask(bytes)) == word)
        op->value ^= 1;
    flag->before = word;
    return change(op, offset, bytes, operation);
}

static uint64_t apply_raise(struct op *op) {
    static const enum amo_operation operations[] = {[RAISE_SET] = SET,
                                                    [RAISE_ADD] = ADD,
                                                    [RAISE_INC] = INC,
                                                    [RAISE_SWAP] = SWAP,
                                                    [RAISE_P] = SET};
    return apply_flag(op, operations[op->verb]);
}

static uint64_t apply_signal(struct op *op) {
    if (op->verb == SIGNAL_FETCH)
        return word_get(op->actor, flag_offset(op->actor, op->team, op->slot), 8);
    return apply_flag(op, op->verb == SIGNAL_SET ? SET : ADD);
}

/* New memory gets new contents; realloc keeps the old ones. */
static void apply_memory(const struct op *op) {
    if (op->verb == MEMORY_NOTHING || op->verb == MEMORY_FREE)
        return;
    uint32_t kept = op->verb == MEMORY_REALLOC ? op->bsize : 0, known = blocks[op->slot].known;
    if (kept < known)
        memory_fill(block_offset(op->slot) + kept, known - kept);
}

struct outcome model_apply(struct op *op) {
    struct outcome outcome = {0};
    switch (op->class) {
    case PUT_SIGNAL:
        apply_signal(op);
        apply_move(op);
        break;
    case PUT:
    case GET:
    case ELEMENT:
    case STRIDED:
    case BLOCKS:
    case MOVE_C11:
    case THREADS:
    case PUT_NBI:
    case GET_NBI:
        apply_move(op);
        break;
    case STORE:
        apply_store(op);
        break;
    case AMO:
    case AMO_FETCH:
    case AMO_NBI:
    case AMO_OLD:
    case AMO_C11:
        outcome.fetched = apply_amo(op);
        break;
    case CROWD:
        outcome.fetched = apply_crowd(op);
        break;
    case LOCK:
        apply_lock(op);
        break;
    case SIGNAL:
        outcome.fetched = apply_signal(op);
        break;
    case RAISE:
        outcome.fetched = apply_raise(op);
        break;
    case BROADCAST:
    case COLLECT:
    case ALLTOALL:
    case REDUCE:
    case SCAN:
    case ACTIVE_SET:
        model_collective(op);
        break;
    case MEMORY:
        apply_memory(op);
        break;
    default:
        break;
    }
    return outcome;
}
