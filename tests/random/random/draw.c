/* SPDX-License-Identifier: BSD-3-Clause */
/* Draws the class of the next operation, or of the operation that must make order before it. */
#include "draw.h"

enum { ATTEMPTS = 8 };

static const struct {
    uint8_t weight;
    enum verdict (*draw)(struct op *op);
} draws[CLASSES] = {
#define WEIGHT_OF(NAME, TEXT, WEIGHT) [NAME].weight = WEIGHT,
    OP_CLASSES(WEIGHT_OF)
#undef WEIGHT_OF
#define DRAW(NAME, FUNCTION) [NAME].draw = FUNCTION,
    /* clang-format off */
    DRAW(PUT, draw_contiguous)  DRAW(GET, draw_contiguous)  DRAW(ELEMENT, draw_element)
    DRAW(PUT_NBI, draw_contiguous)  DRAW(GET_NBI, draw_contiguous)
    DRAW(STRIDED, draw_strided) DRAW(BLOCKS, draw_strided)  DRAW(STORE, draw_store)
    DRAW(MOVE_C11, draw_contiguous)  DRAW(THREADS, draw_contiguous)
    DRAW(AMO, draw_amo)         DRAW(AMO_FETCH, draw_amo)   DRAW(AMO_NBI, draw_amo)
    DRAW(AMO_OLD, draw_amo)     DRAW(AMO_C11, draw_amo)
    DRAW(CROWD, draw_crowd)     DRAW(PUT_SIGNAL, draw_put_signal)  DRAW(SIGNAL, draw_signal)
    DRAW(RAISE, draw_raise)     DRAW(WAIT, draw_wait)       DRAW(TEST, draw_wait)
    DRAW(FENCE, draw_order)     DRAW(QUIET, draw_order)     DRAW(PE_QUIET, draw_order)
    DRAW(CONTEXT, draw_context) DRAW(TEAM, draw_team)       DRAW(QUERY, draw_query)
    DRAW(MEMORY, draw_memory)   DRAW(BARRIER, draw_barrier)
    DRAW(LOCK, draw_lock)       DRAW(BROADCAST, draw_collective)  DRAW(COLLECT, draw_collective)
    DRAW(ALLTOALL, draw_collective)  DRAW(REDUCE, draw_collective)  DRAW(SCAN, draw_collective)
    DRAW(ACTIVE_SET, draw_active_set)
/* clang-format on */
#undef DRAW
};

static enum op_class draw_class(void) {
    static uint32_t sum;
    if (sum == 0)
        for (int class = 0; class < CLASSES; class ++)
            sum += draws[class].weight;
    uint32_t at = below(sum);
    enum op_class class = 0;
    while (at >= draws[class].weight)
        at -= draws[class ++].weight;
    return class;
}

/* The actor completes its own access that delays this one; sometimes a fence suffices. */
static void make_order(struct op *op) {
    int ctx = order_hindrance / PES_MAX, peer = order_hindrance % PES_MAX;
    op->ctx = (uint8_t)(ctx == STORES ? 0 : ctx);
    op->plain = op->ctx == 0 && coin(2);
    op->class = ctx == STORES ? QUIET : (enum op_class[]){FENCE, QUIET, PE_QUIET}[below(3)];
    if (op->class == PE_QUIET) {
        op->included = (uint8_t)(1 << peer);
        order_pe_quiet(op->actor, op->ctx, peer);
    } else if (op->class == FENCE)
        order_fence(op->actor, op->ctx, ctx_orders_stores(op->actor, op->ctx));
    else
        order_quiet(op->actor, op->ctx, ctx_orders_stores(op->actor, op->ctx));
}

void draw(struct op *op, uint32_t number) {
    enum op_class class = draw_class();
    uint8_t actor = (uint8_t)below((uint32_t)npes);
    order_step(actor);
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        *op = (struct op){.class = class, .number = number, .actor = actor};
        op->members = (uint8_t)(1 << actor);
        enum verdict verdict = draws[class].draw(op);
        if (verdict == CLEAR)
            return;
        if (verdict == PENDING && (attempt == ATTEMPTS - 1 || coin(2))) {
            *op = (struct op){.class = class, .number = number, .actor = actor};
            op->members = (uint8_t)(1 << actor);
            make_order(op);
            return;
        }
    }
    *op = (struct op){.class = BARRIER, .number = number, .actor = actor};
    draw_flush(op);
}
