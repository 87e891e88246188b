/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives. Before a collective begins, all members must know that no PE accesses any member's
 * dest; a member's source concerns only that member. */
#include "collective.h"

/* The time until which each PE uses a pSync. */
static uint32_t psync_used_at[PSYNCS][PES_MAX];

/* Returns the largest array of a member. In a broadcast all members pass the root's size, whether
 * they use the array or not. */
static uint32_t most(const struct op *op, const struct collective *coll, bool source) {
    uint32_t bytes = coll->kind == TO_ALL_OF_ROOT ? op->bsize * coll->bytes : 0;
    for (int member = 0; member < coll->npes; member++) {
        uint32_t own =
            source ? coll_source_bytes(op, coll, member) : coll_dest_bytes(op, coll, member);
        bytes = own > bytes ? own : bytes;
    }
    return bytes;
}

/* Draws the elements that a member contributes, few enough for dest, and strides and the like. */
static void draw_shape(struct op *op, const struct collective *coll) {
    op->dst = op->sst = 1;
    if (coll->kind == EXCHANGE_STRIDED) {
        op->dst = 1 + below(3);
        op->sst = 1 + below(3);
    }
    uint32_t stride = op->dst > op->sst ? op->dst : op->sst;
    uint32_t most_elems = COLL_BYTES_MAX / (coll->bytes * stride * (uint32_t)coll->npes);
    uint32_t limit = coin(32) ? most_elems : coin(4) ? 64 : 8;
    if (coll->kind >= REDUCTION && coin(32))
        limit = COLL_BYTES_MAX / coll->bytes;
    if (coll->fold && coll->active && limit > TO_ALL_NELEMS_MAX)
        limit = TO_ALL_NELEMS_MAX;
    op->bsize = coin(64) ? 0 : 1 + below(limit);
    for (int member = 0; member < coll->npes; member++)
        op->counts[member] = (uint16_t)below(op->bsize + 1);
    op->root = (uint8_t)below((uint32_t)coll->npes);
    op->form = coll->kind >= REDUCTION && coin(4);
}

static bool place_both(struct op *op, const struct collective *coll) {
    uint32_t dest = most(op, coll, false), source = most(op, coll, true);
    if (!memory_place(op->actor, dest, coll->bytes, &op->remote))
        return false;
    if (op->form) {
        op->local = op->remote;
        return true;
    }
    return memory_place(op->actor, source, coll->bytes, &op->local) &&
           (op->local + source + 16 <= op->remote || op->remote + dest + 16 <= op->local);
}

static enum verdict may_begin(const struct op *op, const struct collective *coll) {
    bool stores = coll->fold && coll->fold->operand;
    for (int member = 0; member < coll->npes; member++) {
        int pe = coll->pe[member];
        struct extent dest = extent_of(pe, op->remote, coll_dest_bytes(op, coll, member));
        struct extent source = extent_of(pe, op->local, coll_source_bytes(op, coll, member));
        if (dest.bytes && order_may_write(GROUP, VIA_DONE, dest, STRICT) != CLEAR)
            return FOREIGN;
        if (source.bytes && (stores ? order_may_write(pe, via_of(STORES, pe), source, STRICT)
                                    : order_may_read(pe, VIA_DONE, source)) != CLEAR)
            return FOREIGN;
    }
    return CLEAR;
}

static void book(const struct op *op, const struct collective *coll) {
    bool stores = coll->fold && coll->fold->operand;
    for (int member = 0; member < coll->npes; member++) {
        int pe = coll->pe[member];
        struct extent dest = extent_of(pe, op->remote, coll_dest_bytes(op, coll, member));
        struct extent source = extent_of(pe, op->local, coll_source_bytes(op, coll, member));
        if (source.bytes && stores)
            order_wrote(pe, via_of(STORES, pe), source, ARRIVAL);
        if (source.bytes)
            order_read(pe, VIA_DONE, source);
        if (dest.bytes)
            order_wrote(pe, via_of(STORES, pe), dest, LANDING);
        memory_used(pe, coin(2) ? op->local : op->remote);
    }
}

/* The caller may overwrite the source when the call returns, and often does. */
static void draw_reuse(struct op *op, const struct collective *coll) {
    op->reuse = !op->form && coin(2);
    for (int member = 0; op->reuse && member < coll->npes; member++) {
        int pe = coll->pe[member];
        struct extent source = extent_of(pe, op->local, coll_source_bytes(op, coll, member));
        op->reuse =
            source.bytes == 0 || order_may_write(pe, via_of(STORES, pe), source, STRICT) == CLEAR;
    }
    for (int member = 0; op->reuse && member < coll->npes; member++) {
        int pe = coll->pe[member];
        struct extent source = extent_of(pe, op->local, coll_source_bytes(op, coll, member));
        if (source.bytes)
            order_wrote(pe, via_of(STORES, pe), source, ARRIVAL);
    }
}

/* Draws all except the members. */
static enum verdict draw_data(struct op *op) {
    op->value = random_next(&dice);
    op->symmetric = true;
    struct collective coll = coll_of(op);
    for (int member = 0; member < coll.npes; member++)
        op->members |= (uint8_t)(1 << coll.pe[member]);
    draw_shape(op, &coll);
    draw_step_all(op);
    order_group(op->members);
    if (!place_both(op, &coll))
        return FOREIGN;
    enum verdict verdict = may_begin(op, &coll);
    if (verdict == CLEAR) {
        book(op, &coll);
        draw_reuse(op, &coll);
    }
    return verdict;
}

enum verdict draw_collective(struct op *op) {
    op->team = (uint8_t)team_any(-1);
    op->members = 0;
    op->verb = (uint8_t)below(2);
    op->row = (uint8_t)below((uint32_t)(op->class == REDUCE ? REDUCE_ROWS
                                        : op->class == SCAN ? SCAN_ROWS
                                                            : MOVE_ROWS));
    return draw_data(op);
}

static void draw_active(struct op *op) {
    do {
        op->start = (int)below((uint32_t)npes);
        op->stride = (int)below(LOG_STRIDES);
        op->size = 1 + (int)below((uint32_t)npes);
    } while (op->start + ((op->size - 1) << op->stride) >= npes);
}

static enum verdict draw_active_barrier(struct op *op) {
    for (int i = 0; i < op->size; i++)
        op->members |= (uint8_t)(1 << (op->start + (i << op->stride)));
    draw_step_all(op);
    for (int pe = 0; pe < npes; pe++)
        if (op->verb == ACTIVE_BARRIER && op->members >> pe & 1)
            order_quiet(pe, 0, true);
    order_sync(op->members);
    return CLEAR;
}

/* A pSync may be used again when all members know that no member uses it any more. */
enum verdict draw_active_set(struct op *op) {
    op->members = 0;
    op->verb = (uint8_t)below(ACTIVE_VERBS);
    draw_active(op);
    if (op->verb < ACTIVE_BROADCAST)
        return draw_active_barrier(op);
    op->row = (uint8_t)below(op->verb == ACTIVE_TO_ALL ? (uint32_t)TO_ALL_ROWS : 2);
    op->slot = (uint8_t)below(PSYNCS);
    for (int pe = 0; pe < npes; pe++)
        for (int i = 0; i < op->size; i++)
            if (!order_knows(op->start + (i << op->stride), pe, psync_used_at[op->slot][pe]))
                return FOREIGN;
    enum verdict verdict = draw_data(op);
    for (int pe = 0; pe < npes && verdict == CLEAR; pe++)
        if (op->members >> pe & 1)
            psync_used_at[op->slot][pe] = order_now(pe);
    return verdict;
}
