/* SPDX-License-Identifier: BSD-3-Clause */
/* Ordering, contexts, teams, memory and barriers. */
#include "draw.h"

enum verdict draw_order(struct op *op) {
    op->ctx = (uint8_t)ctx_any(op->actor);
    op->plain = op->ctx == 0 && coin(2);
    bool stores = ctx_orders_stores(op->actor, op->ctx);
    if (op->class == FENCE)
        order_fence(op->actor, op->ctx, stores);
    else if (op->class == QUIET)
        order_quiet(op->actor, op->ctx, stores);
    else {
        op->included = (uint8_t)below(256) & teams[contexts[op->actor][op->ctx].team].members;
        for (int pe = 0; pe < npes; pe++)
            if (op->included >> pe & 1)
                order_pe_quiet(op->actor, op->ctx, pe);
    }
    return CLEAR;
}

void ctx_retire(int pe, int ctx) {
    order_quiet(pe, ctx, ctx_orders_stores(pe, ctx));
    contexts[pe][ctx].live = false;
}

/* Creates a context of op->team, with op->value as options. Sessions are hints. */
enum verdict draw_context(struct op *op) {
    int unused = ctx_unused(op->actor), any = (int)below(CTXS);
    if (unused >= 0 && coin(2)) {
        op->verb = CTX_CREATE;
        op->ctx = (uint8_t)unused;
        op->team = (uint8_t)team_any(op->actor);
        op->value = below(8); /* any of the three options */
        op->form = (uint8_t)below(2);
        contexts[op->actor][unused] = (struct context){true, op->team, (long)op->value};
        return CLEAR;
    }
    op->ctx = (uint8_t)(contexts[op->actor][any].live ? any : 0);
    op->team = contexts[op->actor][op->ctx].team;
    op->value = below(4); /* options and mask of a session */
    op->verb = (uint8_t)(coin(2) ? CTX_SESSION : op->ctx == 0 || coin(3) ? CTX_TEAM : CTX_DESTROY);
    if (op->verb == CTX_DESTROY)
        ctx_retire(op->actor, op->ctx);
    return CLEAR;
}

void draw_step_all(const struct op *op) {
    for (int pe = 0; pe < npes; pe++)
        if (pe != op->actor && op->members >> pe & 1)
            order_step(pe);
}

/* Draws start, stride and size of a split of `n` members; half of the strides are negative. */
static void draw_triplet(struct op *op, int n) {
    int last;
    do {
        op->start = (int)below((uint32_t)n);
        op->size = 1 + (int)below((uint32_t)n);
        op->stride = (int)below(2 * (uint32_t)n) - n;
        last = op->start + (op->size - 1) * op->stride;
    } while (last < 0 || last >= n || (op->stride == 0 && op->size != 1));
}

static void split_strided(struct op *op, const struct team *parent) {
    uint8_t pes[PES_MAX];
    draw_triplet(op, parent->npes);
    for (int i = 0; i < op->size; i++)
        pes[i] = parent->pe[op->start + i * op->stride];
    op->slot = (uint8_t)team_unused();
    team_make(op->slot, pes, op->size, (int)op->value);
}

/* Puts the slots of the rows' teams into the low bytes of op->counts, and of the columns' into the
 * high bytes. */
static void split_2d(struct op *op, const struct team *parent) {
    int n = parent->npes, width = op->size < n ? op->size : n;
    for (int axis = 0; axis < 2; axis++) {
        int lines = axis == 0 ? (n + width - 1) / width : width;
        for (int line = 0; line < lines; line++) {
            uint8_t pes[PES_MAX];
            int count = 0, slot = team_unused();
            for (int i = 0; i < n; i++)
                if ((axis == 0 ? i / width : i % width) == line) {
                    op->counts[parent->pe[i]] |= (uint16_t)(slot << 8 * axis);
                    pes[count++] = parent->pe[i];
                }
            team_make(slot, pes, count, (int)op->value);
        }
    }
}

/* Private contexts are destroyed before, as op->counts says; shareable ones end with the team. */
static void destroy_team(struct op *op) {
    for (int pe = 0; pe < npes; pe++)
        for (int ctx = 1; ctx < CTXS; ctx++)
            if (contexts[pe][ctx].live && contexts[pe][ctx].team == op->slot) {
                if (contexts[pe][ctx].options & SHMEM_CTX_PRIVATE)
                    op->counts[pe] |= (uint16_t)(1 << ctx);
                ctx_retire(pe, ctx);
            }
    team_drop(op->slot);
}

/* op->team is the parent; op->value is num_contexts of the new teams, 0 for no configuration. */
enum verdict draw_team(struct op *op) {
    int live = teams_live();
    op->verb = coin(4) ? TEAM_SPLIT_2D : TEAM_SPLIT;
    if (live > 2 && (live + 2 * PES_MAX > TEAMS_MAX || coin(3))) {
        op->verb = TEAM_DESTROY;
        do
            op->slot = (uint8_t)team_any(-1);
        while (op->slot <= SHARED);
        op->members = teams[op->slot].members;
        draw_step_all(op);
        destroy_team(op);
        return CLEAR;
    }
    op->team = (uint8_t)team_any(-1);
    const struct team *parent = &teams[op->team];
    op->members = parent->members;
    op->value = below(4);
    draw_step_all(op);
    if (op->verb == TEAM_SPLIT)
        split_strided(op, parent);
    else {
        op->size = 1 + (int)below((uint32_t)parent->npes + 1);
        split_2d(op, parent);
    }
    return CLEAR;
}

/* op->team and op->slot: two teams of the actor; op->target: a PE of the first. */
enum verdict draw_query(struct op *op) {
    op->verb = (uint8_t)below(QUESTIONS);
    op->team = (uint8_t)team_any(op->actor);
    op->slot = (uint8_t)team_any(op->actor);
    op->target = teams[op->team].pe[below(teams[op->team].npes)];
    return memory_place(op->target, 1, 1, &op->remote) ? CLEAR : FOREIGN;
}

static void barrier(uint8_t members) {
    for (int pe = 0; pe < npes; pe++)
        if (members >> pe & 1)
            order_quiet(pe, 0, true);
    order_sync(members);
}

static uint8_t everybody(void) {
    return (uint8_t)((1 << npes) - 1);
}

/* Draws the contexts on which a PE must call quiet before its accesses may be forgotten; the
 * barrier completes the default context. */
static void quiet_all(struct op *op) {
    for (int pe = 0; pe < npes; pe++)
        for (int ctx = 1; ctx < CTXS; ctx++)
            if (contexts[pe][ctx].live && !order_is_quiet(pe, ctx)) {
                op->counts[pe] |= (uint16_t)(1 << ctx);
                order_quiet(pe, ctx, ctx_orders_stores(pe, ctx));
            }
}

void draw_flush(struct op *op) {
    op->verb = FLUSH;
    op->members = everybody();
    draw_step_all(op);
    quiet_all(op);
    barrier(op->members);
}

enum verdict draw_barrier(struct op *op) {
    op->verb = (uint8_t)below(BARRIER_VERBS);
    op->team = (uint8_t)(op->verb == TEAM_SYNC ? team_any(-1) : WORLD);
    op->members = teams[op->team].members;
    draw_step_all(op);
    if (op->verb == BARRIER_ALL)
        barrier(op->members);
    else
        order_sync(op->members);
    return CLEAR;
}

/* op->nblocks: bytes; op->value: alignment or hints; op->bsize: bytes that were known before. Each
 * call ends with a sync here, because the new memory gets its contents by stores. */
enum verdict draw_memory(struct op *op) {
    op->slot = (uint8_t)(1 + below(BLOCKS_MAX - 1));
    struct block *block = &blocks[op->slot];
    bool exists = block->known != 0;
    op->verb = (uint8_t)(coin(16) ? MEMORY_NOTHING
                         : exists ? MEMORY_REALLOC + below(2)
                                  : MEMORY_MALLOC + below(MEMORY_NOTHING));
    op->nblocks = 1 + below(coin(16) ? 256 << 10 : coin(2) ? BLOCK_BYTES : 256);
    op->value = op->verb == MEMORY_ALIGN ? UINT64_C(16) << below(9) : below(4);
    op->bsize = block->known;
    op->members = everybody();
    draw_step_all(op);
    if (op->verb == MEMORY_NOTHING)
        return CLEAR;
    if (exists)
        quiet_all(op);
    barrier(op->members);
    block->known = op->verb == MEMORY_FREE     ? 0
                   : op->nblocks < BLOCK_BYTES ? op->nblocks
                                               : BLOCK_BYTES;
    return CLEAR;
}
