/* SPDX-License-Identifier: BSD-3-Clause */
/* The generator: draws the next operation that the standard allows, and books it (order.h,
 * objects.h, words.h). It never looks at the model's bytes. Each function below draws for one
 * class; op->class and op->actor are set. It has not booked the operation unless it returns
 * CLEAR. */
#ifndef TESTS_RANDOM_DRAW_H
#define TESTS_RANDOM_DRAW_H

#include "objects.h"
#include "words.h"

/* Private memory for results: of blocking calls, then of non-blocking calls. The GUARD bytes on
 * both sides must not change. */
enum {
    GUARD = 32,
    LANDING_NBI = RUN_BYTES_MAX + 2 * GUARD + 256,
    LANDING_BYTES = LANDING_NBI + (64 << 10),
};

enum verdict draw_contiguous(struct op *op);
enum verdict draw_element(struct op *op);
enum verdict draw_strided(struct op *op);
enum verdict draw_store(struct op *op);
enum verdict draw_put_signal(struct op *op);
enum verdict draw_amo(struct op *op);
enum verdict draw_crowd(struct op *op);
enum verdict draw_signal(struct op *op);
enum verdict draw_raise(struct op *op);
enum verdict draw_wait(struct op *op);
enum verdict draw_lock(struct op *op);
enum verdict draw_order(struct op *op);
enum verdict draw_context(struct op *op);
enum verdict draw_team(struct op *op);
enum verdict draw_query(struct op *op);
enum verdict draw_memory(struct op *op);
enum verdict draw_barrier(struct op *op);
enum verdict draw_collective(struct op *op);
enum verdict draw_active_set(struct op *op);

/* Parts of the functions above. */
void draw_flush(struct op *op);          /* all contexts of all PEs, and a barrier */
void draw_step_all(const struct op *op); /* of all members except the actor */
void draw_remote(struct op *op);         /* a context and a target in its team */
bool draw_landing(struct op *op, uint32_t bytes, bool nbi);
enum verdict draw_flag(struct op *op); /* a flag that the actor may raise at op->target */
void raise_flag(struct op *op, struct extent payload);
void ctx_retire(int pe, int ctx);

static inline uint32_t span(uint32_t nblocks, uint32_t bsize, uint32_t stride, uint32_t bytes) {
    return nblocks == 0 ? 0 : ((nblocks - 1) * stride + bsize) * bytes;
}

static inline struct extent extent_of(int pe, uint32_t offset, uint32_t bytes) {
    return (struct extent){pe, offset, bytes};
}

/* The direction of an operation on `row`, and the bytes that it spans on either side. */
static inline bool op_gets(const struct op *op) {
    return op->class == GET || op->class == GET_NBI ||
           ((op->class >= STRIDED && op->class <= THREADS) && op->verb == INDEX_GET) ||
           (op->class == ELEMENT && op->verb == ELEMENT_G);
}
static inline uint32_t op_remote_span(const struct op *op) {
    return span(op->nblocks, op->bsize, op_gets(op) ? op->sst : op->dst,
                rma_routines[op->row].bytes);
}
static inline uint32_t op_local_span(const struct op *op) {
    return span(op->nblocks, op->bsize, op_gets(op) ? op->dst : op->sst,
                rma_routines[op->row].bytes);
}
static inline bool op_is_amo(const struct op *op) {
    return op->class >= AMO && op->class <= AMO_C11;
}
static inline bool op_is_nbi(const struct op *op) {
    return op->class == GET_NBI || op->class == PUT_NBI || (op_is_amo(op) && op->form == NBI) ||
           ((op->class == PUT_SIGNAL || op->class == MOVE_C11) && op->form);
}

/* Returns the routine of an atomic, or NULL if there is no routine of that name. */
static inline amo *op_amo(const struct op *op) {
    const struct amo_routines *rows = op->class == AMO_OLD   ? old_amo_routines
                                      : op->class == AMO_C11 ? c11_amo_routines
                                                             : amo_routines;
    return amo_routine_of(&rows[op->row], op->verb);
}

/* Begins an epoch. */
void draw_begin(void);

/* Draws the next operation of the program. */
void draw(struct op *op, uint32_t number);

#endif
