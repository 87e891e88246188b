/* SPDX-License-Identifier: BSD-3-Clause */
/* Atomics on words that only the actor uses, on crowds, and on flags, which are raised and waited
 * for. */
#include "draw.h"

static bool has_form(enum amo_form form, enum amo_operation operation) {
    bool only_fetches = operation == FETCH || operation == SWAP || operation == COMPARE_SWAP;
    return form == SILENT ? !only_fetches : operation != SET;
}

/* The old names only have blocking forms, without a context. */
static void draw_amo_form(struct op *op) {
    static const uint8_t forms[] = {[AMO] = SILENT, [AMO_FETCH] = FETCHING, [AMO_NBI] = NBI};
    if (op->class == AMO_OLD) {
        op->ctx = 0;
        op->plain = true;
        op->target = (uint8_t)below((uint32_t)npes);
    }
    op->form = (uint8_t)(op->class == AMO_OLD   ? below(NBI)
                         : op->class == AMO_C11 ? below(NBI + 1)
                                                : forms[op->class]);
}

/* op->verb is the operation, op->value its operand; a comparison succeeds if op->bsize is set. */
enum verdict draw_amo(struct op *op) {
    draw_remote(op);
    draw_amo_form(op);
    do {
        op->row = (uint8_t)(op->class == AMO_OLD && coin(2) ? AMO_BITWISE_ROWS + below(3)
                                                            : below((uint32_t)AMO_ROWS));
        op->verb = (uint8_t)below(AMO_OPERATIONS);
    } while (!has_form(op->form, op->verb) || !op_amo(op));
    op->value = random_next(&dice);
    op->cond = random_next(&dice);
    op->bsize = below(2);
    uint32_t bytes = amo_routines[op->row].bytes;
    if (!memory_place(op->target, bytes, bytes, &op->remote))
        return FOREIGN;
    struct extent extent = extent_of(op->target, op->remote, bytes);
    uint8_t via = via_of(op->ctx, op->target);
    enum verdict verdict = order_may_write(op->actor, via, extent, FENCEABLE);
    if (verdict != CLEAR)
        return verdict;
    if (!draw_landing(op, bytes, op->form == NBI))
        return PENDING;
    memory_used(op->target, op->remote);
    order_wrote(op->actor, op->form == FETCHING ? VIA_DONE : via, extent, ARRIVAL);
    return CLEAR;
}

static void draw_crowd_verb(struct op *op, const struct crowd *crowd) {
    op->form = (uint8_t)below(3);
    switch (crowd->kind) {
    case SUM:
        op->verb = crowd->row == AMO_UINT64 && coin(2) ? CROWD_SIGNAL
                   : coin(8)                           ? CROWD_FETCH
                                                       : CROWD_ADD;
        break;
    case BITS:
        op->verb = coin(4) ? CROWD_FETCH : CROWD_BITS;
        break;
    case TICKET:
        op->verb = coin(3) ? CROWD_CAS : CROWD_TICKET;
        break;
    case EXCHANGE:
        op->verb = CROWD_SWAP;
        break;
    default:
        op->verb = crowd->ncandidates == CANDIDATES_MAX || coin(3) ? CROWD_FETCH : CROWD_SET;
    }
}

/* Returns a word of the target that is, or is not, for locks. */
static struct crowd *draw_word(struct op *op, bool locked) {
    do
        op->slot = (uint8_t)below(CROWDS);
    while ((crowds[op->target][op->slot].kind == LOCKED) != locked);
    return &crowds[op->target][op->slot];
}

/* Books the operations that are pending on a word after an operation of `pe`. */
static void book_crowd(const struct op *op, struct crowd *crowd, int pe, int ctx) {
    crowd->ctxs[pe] |= (uint8_t)(1 << ctx);
    order_travels(pe, via_of(ctx, op->target));
}

/* All PEs at once: they sync, and then each repeats its operation. */
static void draw_rush(struct op *op, struct crowd *crowd) {
    op->ctx = 0;
    op->nblocks = UINT32_C(32) << below(4);
    op->members = (uint8_t)((1 << npes) - 1);
    draw_step_all(op);
    order_sync(op->members);
    for (int pe = 0; pe < npes; pe++)
        book_crowd(op, crowd, pe, 0);
}

/* op->bsize: the actor's earlier operations on the word are complete. If op->nthreads is not 0,
 * that many threads share the op->nblocks operations. */
enum verdict draw_crowd(struct op *op) {
    draw_remote(op);
    struct crowd *crowd = draw_word(op, false);
    op->row = crowd->row;
    op->remote = crowd_offset(op->slot);
    op->value = random_next(&dice);
    op->nblocks = 1;
    draw_crowd_verb(op, crowd);
    for (int ctx = 0; ctx < CTXS; ctx++)
        if (crowd->ctxs[op->actor] >> ctx & 1 && order_is_quiet(op->actor, ctx))
            crowd->ctxs[op->actor] &= (uint8_t) ~(1 << ctx);
    op->bsize = crowd->ctxs[op->actor] == 0;
    if (op->verb == CROWD_SET)
        crowd->candidates[crowd->ncandidates++] =
            crowd_operand(op, op->actor, 0) & word_mask(amo_routines[crowd->row].bytes);
    if ((op->verb == CROWD_ADD || op->verb == CROWD_BITS) && coin(8)) {
        op->nthreads = (uint8_t)(2 + below(3));
        op->nblocks = 1024;
    }
    if (crowd->kind != RACE && op->verb != CROWD_FETCH && coin(16))
        draw_rush(op, crowd);
    else if (op->verb != CROWD_FETCH)
        book_crowd(op, crowd, op->actor, op->ctx);
    return CLEAR;
}

/* Both words of a pair grow under lock op->team, which the word determines; sometimes all PEs
 * increase them, more than once. */
enum verdict draw_lock(struct op *op) {
    op->target = (uint8_t)below((uint32_t)npes);
    draw_word(op, true);
    op->verb = (uint8_t)below(2);
    op->team = op->slot % LOCKS;
    op->remote = crowd_offset(op->slot);
    op->value = random_next(&dice);
    op->nblocks = 1;
    if (coin(16)) {
        op->nblocks = 4;
        op->members = (uint8_t)((1 << npes) - 1);
        draw_step_all(op);
        order_sync(op->members);
        order_step(op->actor); /* clearing the lock is no longer before the sync */
        draw_step_all(op);
    }
    for (int pe = 0; pe < npes; pe++)
        if (op->members >> pe & 1)
            order_quiet(pe, 0, true);
    return CLEAR;
}

/* Returns a flag that is down and that the actor knows to have been waited for; for the classes of
 * signals, a flag of a signal's group. */
enum verdict draw_flag(struct op *op) {
    bool signals = op->class != RAISE;
    for (int attempt = 0; attempt < 4; attempt++) {
        op->team = (uint8_t)(signals ? below(2) * (GROUPS / 2) : below(GROUPS));
        op->slot = (uint8_t)below(GROUP_FLAGS);
        const struct flag *flag = &groups[op->target][op->team].flags[op->slot];
        if (!flag->raised && order_knows(op->actor, op->target, flag->waited_at))
            return CLEAR;
    }
    return FOREIGN;
}

void raise_flag(struct op *op, struct extent payload) {
    struct flag *flag = &groups[op->target][op->team].flags[op->slot];
    flag->raised = true;
    flag->from = order_signal(op->actor, op->ctx, payload);
    order_travels(op->actor, via_of(op->ctx, op->target));
}

/* Only the owner fetches, from a flag that no PE can raise meanwhile. */
enum verdict draw_signal(struct op *op) {
    draw_remote(op);
    op->verb = (uint8_t)below(3);
    op->value = random_next(&dice);
    if (op->verb == SIGNAL_FETCH)
        op->target = op->actor;
    enum verdict verdict = draw_flag(op);
    if (verdict != CLEAR)
        return verdict;
    if (op->verb == SIGNAL_FETCH)
        groups[op->target][op->team].flags[op->slot].waited_at = order_now(op->actor);
    else
        raise_flag(op, extent_of(op->target, 0, 0));
    return CLEAR;
}

/* Atomics; p for the short types, which have no atomics, and sometimes for others. */
enum verdict draw_raise(struct op *op) {
    draw_remote(op);
    enum verdict verdict = draw_flag(op);
    if (verdict != CLEAR)
        return verdict;
    op->row = groups[op->target][op->team].row;
    op->verb = (uint8_t)(op->row >= WAIT_SET_ROWS ? RAISE_P : below(RAISE_P + 1));
    op->value = random_next(&dice);
    raise_flag(op, extent_of(op->target, 0, 0));
    return CLEAR;
}

/* Returns whether the payload that a signal announces can be checked immediately. */
static bool draw_payload(const struct op *op, const struct snapshot *from) {
    if (from->payload.bytes == 0 || !order_is_payload(from) ||
        order_may_read(op->actor, VIA_DONE, from->payload) != CLEAR)
        return false;
    order_read(op->actor, VIA_DONE, from->payload);
    return true;
}

/* Waits for all raised flags of a group, or for one of them; or, if no flag is up, tests some
 * flags. op->form: they are raised. */
enum verdict draw_wait(struct op *op) {
    op->target = op->actor;
    op->team = (uint8_t)below(GROUPS);
    op->value = random_next(&dice);
    struct flag_group *group = &groups[op->actor][op->team];
    op->row = group->row;
    uint8_t raised = 0;
    for (int i = 0; i < GROUP_FLAGS; i++)
        raised |= (uint8_t)(group->flags[i].raised << i);
    op->form = raised != 0;
    op->included = raised ? raised : (uint8_t)below(256);
    op->verb = (uint8_t)(op->row >= WAIT_SET_ROWS ? WAIT_ONE : below(WAIT_SOME + 1));
    if (op->verb == WAIT_ONE) {
        op->included = op->included ? op->included & (uint8_t)-op->included : 1;
        if (op->row == WAIT_UINT64 && coin(2))
            op->verb = WAIT_SIGNAL;
    }
    for (int i = 0; i < GROUP_FLAGS; i++)
        if (op->included >> i & 1) {
            struct flag *flag = &group->flags[i];
            if (flag->raised)
                order_heard(op->actor, &flag->from);
            if (flag->raised && draw_payload(op, &flag->from))
                op->payloads |= (uint8_t)(1 << i);
            flag->raised = false;
            flag->waited_at = order_now(op->actor);
        }
    return CLEAR;
}
