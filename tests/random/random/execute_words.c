/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>
#include "execute.h"

enum { SEEN_MAX = 512 };

/* The values that this PE has read from words with several outcomes. */
static struct seen {
    const struct crowd *crowd;
    uint64_t value;
    struct op op;
} seen[SEEN_MAX];
static int nseen;

static uint64_t bits_at(const void *word, uint32_t bytes) {
    uint64_t bits = 0;
    memcpy(&bits, word, bytes);
    return bits;
}

static void expect_word(const struct op *op, const char *what, uint64_t got, uint64_t want) {
    if (got != want)
        diverge(op, "%s: expected %#llx, got %#llx", what, (unsigned long long)want,
                (unsigned long long)got);
}

void call_amo(const struct op *op) {
    op_amo(op)(op_ctx(op), op->verb, op->form, landing + op->local, memory_real(op->remote),
               op->cond, op->value, op_pe(op));
}

void execute_amo(const struct op *op, struct outcome outcome) {
    uint32_t bytes = amo_routines[op->row].bytes;
    landing_clear(op, bytes);
    if (!late_hold(op))
        call_amo(op);
    if (op->form == NBI)
        landing_await(op, bytes);
    else if (op->form == FETCHING)
        expect_word(op, "fetched", bits_at(landing + op->local, bytes), outcome.fetched);
}

/* Makes one operation on a crowd's word; returns the bits that it fetched. */
static uint64_t crowd_call(const struct op *op, enum amo_operation operation, enum amo_form form,
                           uint64_t cond, uint64_t value) {
    uint64_t fetched = 0;
    amo_routine(op->row, operation)(op_ctx(op), operation, form, &fetched, memory_real(op->remote),
                                    cond, value, op_pe(op));
    if (form == NBI)
        shmem_ctx_quiet(ctx_handles[op->ctx]);
    return fetched;
}

/* Takes the next ticket by compare and swap, for which other PEs compete. */
static uint64_t crowd_ticket(const struct op *op) {
    uint64_t fetched = crowd_call(op, FETCH, FETCHING, 0, 0), cond;
    uint64_t mask = word_mask(amo_routines[op->row].bytes);
    do {
        cond = fetched;
        fetched = crowd_call(op, COMPARE_SWAP, FETCHING, cond, (cond + 1) & mask);
    } while (fetched != cond);
    return fetched;
}

static void account(const struct op *op, uint64_t fetched) {
    shmem_ctx_uint64_atomic_add(ctx_handles[op->ctx], memory_real(op->remote + 8), fetched,
                                op_pe(op));
}

/* The fetched value of this PE's own bits is known if it has no pending operations. */
static void crowd_look(const struct op *op, struct outcome outcome) {
    const struct crowd *crowd = &crowds[op->target][op->slot];
    uint64_t fetched = crowd_call(op, FETCH, op->form ? NBI : FETCHING, 0, 0);
    if (crowd->kind == BITS && op->bsize)
        expect_word(op, "own bits", fetched & crowd_bits(me), outcome.fetched & crowd_bits(me));
    if (crowd->kind == RACE && nseen < SEEN_MAX)
        seen[nseen++] = (struct seen){crowd, fetched, *op};
}

/* Makes one operation; returns the fetched values of tickets and swaps. */
static uint64_t crowd_once(const struct op *op, uint64_t value) {
    enum amo_form fetching = op->form == NBI ? NBI : FETCHING;
    switch (op->verb) {
    case CROWD_TICKET:
        return crowd_call(op, op->form == FETCHING ? ADD : INC, fetching, 0, 1);
    case CROWD_CAS:
        return crowd_ticket(op);
    case CROWD_SWAP:
        return crowd_call(op, SWAP, fetching, 0, value);
    case CROWD_SET:
        return crowd_call(op, op->form == SILENT ? SET : SWAP, op->form, 0, value);
    case CROWD_SIGNAL:
        if (op->plain)
            shmem_signal_add(memory_real(op->remote), value, op_pe(op));
        else
            shmem_ctx_signal_add(op_ctx(op), memory_real(op->remote), value, op_pe(op));
        return 0;
    default:
        return crowd_call(op, crowd_operation(op, me), op->form, 0, value);
    }
}

void execute_crowd(const struct op *op, struct outcome outcome) {
    uint64_t fetched = 0;
    if (op->verb == CROWD_FETCH) {
        crowd_look(op, outcome);
        return;
    }
    if (op->members & (op->members - 1))
        shmem_sync_all();
    if (op->nthreads) {
        threads_crowd(op);
        return;
    }
    for (uint32_t repeat = 0; repeat < op->nblocks; repeat++)
        fetched += crowd_once(op, crowd_operand(op, me, repeat));
    if (op->verb == CROWD_TICKET || op->verb == CROWD_CAS || op->verb == CROWD_SWAP)
        account(op, fetched);
}

static void check_exchange(const struct op *last, uint32_t offset, uint32_t bytes) {
    uint64_t word = bits_at(memory_real(offset), bytes);
    uint64_t out = bits_at(memory_real(offset + 8), 8);
    uint64_t in = word_get(me, offset, bytes) + word_get(me, offset + 8, 8);
    if (word + out != in)
        diverge(last, "word %#x, swapped: %#llx went in, %#llx came out", offset,
                (unsigned long long)in, (unsigned long long)(word + out));
}

void crowds_check(const struct op *last) {
    for (int i = 0; i < nseen; i++)
        if (!crowd_has_candidate(seen[i].crowd, seen[i].value))
            diverge(&seen[i].op, "fetched %#llx, which nobody has set",
                    (unsigned long long)seen[i].value);
    nseen = 0;
    for (int i = 0; i < CROWDS; i++) {
        const struct crowd *crowd = &crowds[me][i];
        uint32_t offset = crowd_offset(i), bytes = amo_routines[crowd->row].bytes;
        uint64_t word = bits_at(memory_real(offset), bytes);
        if (crowd->kind == RACE && !crowd_has_candidate(crowd, word))
            diverge(last, "word %#x is %#llx, which nobody has set", offset,
                    (unsigned long long)word);
        if (crowd->kind == EXCHANGE)
            check_exchange(last, offset, bytes);
        if (crowd->kind >= EXCHANGE)
            memcpy(model[me] + offset, memory_real(offset), 16);
    }
}

static void raise_by_amo(const struct op *op, void *word, struct outcome outcome) {
    static const enum amo_operation operations[] = {
        [RAISE_SET] = SET, [RAISE_ADD] = ADD, [RAISE_INC] = INC, [RAISE_SWAP] = SWAP};
    int row = op->row + AMO_BITWISE_ROWS;
    enum amo_operation operation = operations[op->verb];
    uint64_t fetched = 0;
    amo_routine(row, operation)(op_ctx(op), operation, operation == SWAP ? FETCHING : SILENT,
                                &fetched, word, 0, op->value, op_pe(op));
    if (operation == SWAP)
        expect_word(op, "swapped out", fetched, outcome.fetched);
}

void execute_flag(const struct op *op, struct outcome outcome) {
    void *word = memory_real(flag_offset(op->target, op->team, op->slot));
    if (op->class == RAISE && op->verb == RAISE_P)
        wait_routines[op->row].p(op_ctx(op), word, &op->value, op_pe(op));
    else if (op->class == RAISE)
        raise_by_amo(op, word, outcome);
    else if (op->verb == SIGNAL_FETCH)
        expect_word(op, "shmem_signal_fetch", shmem_signal_fetch(word), outcome.fetched);
    else if (op->plain)
        (op->verb == SIGNAL_SET ? shmem_signal_set : shmem_signal_add)(word, op->value, op_pe(op));
    else
        (op->verb == SIGNAL_SET ? shmem_ctx_signal_set
                                : shmem_ctx_signal_add)(op_ctx(op), word, op->value, op_pe(op));
}
