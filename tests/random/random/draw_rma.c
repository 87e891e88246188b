/* SPDX-License-Identifier: BSD-3-Clause */
/* Put and get. The remote side is at op->target, op->remote; the local side at op->local, in
 * symmetric memory, the pool or the landing. A contiguous run of elements is one block. */
#include <string.h>
#include "draw.h"

static uint32_t landing_used[PES_MAX];

void draw_begin(void) {
    memset(landing_used, 0, sizeof landing_used);
}

void draw_remote(struct op *op) {
    op->ctx = (uint8_t)ctx_any(op->actor);
    op->plain = op->ctx == 0 && coin(2);
    const struct team *team = &teams[contexts[op->actor][op->ctx].team];
    op->target = team->pe[below(team->npes)];
}

/* Returns the first context of a PE that has pending operations, or -1. */
static int unquiet_ctx(int pe) {
    for (int ctx = 0; ctx < CTXS; ctx++)
        if (contexts[pe][ctx].live && !order_is_quiet(pe, ctx))
            return ctx;
    return -1;
}

/* Results of non-blocking calls get bytes of their own until nothing is pending. Returns false if
 * the landing is full. */
bool draw_landing(struct op *op, uint32_t bytes, bool nbi) {
    if (!nbi) {
        op->local = GUARD + below(8) * 16;
        return true;
    }
    int unquiet = unquiet_ctx(op->actor);
    if (unquiet < 0)
        landing_used[op->actor] = 0;
    uint32_t needed = (bytes + 2 * GUARD + 15) & ~15u;
    if (LANDING_NBI + landing_used[op->actor] + needed > LANDING_BYTES) {
        order_hindrance = via_of(unquiet, op->target);
        return false;
    }
    op->local = LANDING_NBI + landing_used[op->actor] + GUARD;
    landing_used[op->actor] += needed;
    return true;
}

/* Mostly a few elements, sometimes many, one time in `large` very many, sometimes none. */
static uint32_t draw_nelems(uint32_t bytes, uint32_t large) {
    if (coin(64))
        return 0;
    uint32_t budget = coin(large) ? RUN_BYTES_MAX
                      : coin(8)   ? UINT32_C(1) << below(11)
                                  : UINT32_C(1) << below(7);
    return 1 + below(budget > bytes ? budget / bytes : 1);
}

static bool place_local(struct op *op, uint32_t bytes, uint32_t alignment) {
    op->symmetric = op->class != THREADS && coin(4);
    if (op->symmetric)
        return memory_place(op->actor, bytes, alignment, &op->local);
    if (op_gets(op))
        return draw_landing(op, bytes, op_is_nbi(op));
    op->local = below(POOL_BYTES - bytes) & ~(alignment - 1);
    return true;
}

/* A get into symmetric memory stores there; a put from it reads until it is complete. */
static uint8_t local_via(const struct op *op) {
    if (op_is_nbi(op))
        return via_of(op->ctx, op->target);
    return op_gets(op) ? via_of(STORES, op->actor) : VIA_DONE;
}

static enum verdict worse(enum verdict a, enum verdict b) {
    return a > b ? a : b;
}

/* Threads call quiet themselves. */
static uint8_t remote_via(const struct op *op) {
    return op->class == THREADS ? VIA_DONE : via_of(op->ctx, op->target);
}

static enum verdict may_move(const struct op *op, struct extent remote, struct extent local) {
    uint8_t via = remote_via(op);
    bool gets = op_gets(op);
    enum verdict there =
        gets ? order_may_read(op->actor, op_is_nbi(op) ? via : VIA_DONE, remote)
             : order_may_write(op->actor, via, remote, op->class == THREADS ? STRICT : FENCEABLE);
    if (there == FOREIGN || !op->symmetric)
        return there;
    if (local.pe == remote.pe && local.offset < remote.offset + remote.bytes + 16 &&
        remote.offset < local.offset + local.bytes + 16)
        return FOREIGN;
    return worse(there, gets ? order_may_write(op->actor, local_via(op), local, STRICT)
                             : order_may_read(op->actor, local_via(op), local));
}

static void book(const struct op *op, struct extent remote, struct extent local) {
    uint8_t via = remote_via(op);
    memory_used(remote.pe, remote.offset);
    if (op_gets(op)) {
        order_read(op->actor, op_is_nbi(op) ? via : VIA_DONE, remote);
        if (op->symmetric)
            order_wrote(op->actor, local_via(op), local, LANDING);
    } else {
        order_wrote(op->actor, via, remote, ARRIVAL);
        if (op->symmetric)
            order_read(op->actor, local_via(op), local);
    }
}

/* Places both sides of a shape and books them. */
static enum verdict draw_sides(struct op *op) {
    uint32_t bytes = rma_routines[op->row].bytes, there = op_remote_span(op),
             here = op_local_span(op);
    if (!memory_place(op->target, there, bytes, &op->remote))
        return FOREIGN;
    if (!place_local(op, here, bytes))
        return op->symmetric ? FOREIGN : PENDING;
    if (there == 0) {
        order_travels(op->actor, via_of(op->ctx, op->target));
        return CLEAR;
    }
    struct extent remote = extent_of(op->target, op->remote, there);
    struct extent local = extent_of(op->actor, op->local, here);
    enum verdict verdict = may_move(op, remote, local);
    if (verdict == CLEAR)
        book(op, remote, local);
    return verdict;
}

static void draw_run(struct op *op) {
    op->row = (uint8_t)below((uint32_t)(op->class == MOVE_C11 ? RMA_TYPED_ROWS : RMA_ROWS));
    op->bsize = draw_nelems(rma_routines[op->row].bytes, op->class == PUT_SIGNAL ? 4 : 64);
    op->nblocks = op->bsize != 0;
    op->dst = op->sst = 1;
}

/* The class may leave op->verb open; op->form: the call is non-blocking. */
enum verdict draw_contiguous(struct op *op) {
    draw_remote(op);
    op->verb = (uint8_t)below(2);
    op->form = op->class == MOVE_C11 && coin(2);
    op->nthreads = (uint8_t)(op->class == THREADS ? 2 + below(3) : 0);
    draw_run(op);
    return draw_sides(op);
}

enum verdict draw_element(struct op *op) {
    draw_remote(op);
    op->verb = (uint8_t)below(2);
    op->row = (uint8_t)below((uint32_t)RMA_TYPED_ROWS);
    op->bsize = op->nblocks = op->dst = op->sst = 1;
    return draw_sides(op);
}

enum verdict draw_strided(struct op *op) {
    draw_remote(op);
    op->verb = (uint8_t)below(2);
    op->row = (uint8_t)below((uint32_t)RMA_STRIDED_ROWS);
    op->bsize = op->class == STRIDED ? 1 : 1 + below(6);
    op->nblocks = coin(64) ? 0 : 1 + below(coin(16) ? 64 : 8);
    op->dst = op->bsize + below(4);
    op->sst = op->bsize + below(4);
    return draw_sides(op);
}

/* The target waits for the signal as part of the operation. */
static void draw_await(struct op *op) {
    struct flag *flag = &groups[op->target][op->team].flags[op->slot];
    op->members |= (uint8_t)(1 << op->target);
    draw_step_all(op);
    order_heard(op->target, &flag->from);
    if (flag->from.payload.bytes)
        order_read(op->target, VIA_DONE, flag->from.payload);
    flag->raised = false;
    flag->waited_at = order_now(op->target);
}

/* Raises a flag that announces a payload. op->included: the target waits for the flag. */
enum verdict draw_put_signal(struct op *op) {
    draw_remote(op);
    enum verdict verdict = draw_flag(op);
    if (verdict != CLEAR)
        return verdict;
    op->form = (uint8_t)below(2);
    op->verb = (uint8_t)(coin(2) ? SIGNAL_SET : SIGNAL_ADD);
    op->value = random_next(&dice);
    draw_run(op);
    verdict = draw_sides(op);
    if (verdict == CLEAR)
        raise_flag(op, extent_of(op->target, op->remote, op_remote_span(op)));
    op->included = verdict == CLEAR && coin(3);
    if (op->included)
        draw_await(op);
    return verdict;
}

/* Plain loads and stores, of the PE's own memory and through shmem_ptr. Accesses of the own memory
 * need no order among each other. */
enum verdict draw_store(struct op *op) {
    op->verb = (uint8_t)below(STORE_VERBS);
    bool own = op->verb == LOAD || op->verb == STORE_OWN;
    do
        op->target = own ? op->actor : (uint8_t)below((uint32_t)npes);
    while (!objects_is_near(op->actor, op->target));
    op->row = (uint8_t)(RMA_ROWS - 1);
    op->bsize = 1 + below(64);
    op->nblocks = op->dst = op->sst = 1;
    op->local = below(POOL_BYTES - op->bsize);
    if (!memory_place(op->target, op->bsize, 1, &op->remote))
        return FOREIGN;
    struct extent extent = extent_of(op->target, op->remote, op->bsize);
    uint8_t via = via_of(STORES, op->target);
    bool loads = op->verb == LOAD || op->verb == LOAD_PTR;
    enum verdict verdict = loads ? order_may_read(op->actor, VIA_DONE, extent)
                                 : order_may_write(op->actor, via, extent, STRICT);
    if (verdict != CLEAR)
        return verdict;
    memory_used(op->target, op->remote);
    if (loads)
        order_read(op->actor, VIA_DONE, extent);
    else
        order_wrote(op->actor, via, extent, ARRIVAL);
    return CLEAR;
}
