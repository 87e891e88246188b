/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls the library for an operation in which this PE takes part, and compares the results. */
#ifndef TESTS_RANDOM_EXECUTE_H
#define TESTS_RANDOM_EXECUTE_H

#include "model.h"
#include "report.h"

/* Allocates the objects of the whole run; collective. */
void execute_open(void);

void execute(const struct op *op, struct outcome outcome);

/* Parts of execute. */
void execute_rma(const struct op *op);
void execute_store(const struct op *op);
void execute_amo(const struct op *op, struct outcome outcome);
void execute_crowd(const struct op *op, struct outcome outcome);
void execute_flag(const struct op *op, struct outcome outcome);
void execute_wait(const struct op *op);
void execute_await(const struct op *op);
void execute_lock(const struct op *op);
void execute_order(const struct op *op);
void execute_context(const struct op *op);
void execute_team(const struct op *op);
void execute_query(const struct op *op);
void execute_memory(const struct op *op);
void execute_barrier(const struct op *op);
void execute_collective(const struct op *op);

/* The memory for results; the results that are pending there; and those that a quiet of a context
 * with some PEs has completed. */
extern unsigned char landing[LANDING_BYTES];
void landing_clear(const struct op *op, uint32_t bytes);
void landing_await(const struct op *op, uint32_t bytes);
void landing_check(const struct op *op, uint32_t offset, uint32_t bytes);
void landing_quiet(int ctx, uint8_t peers);

/* Holds an operation back until late_deliver requests the pending operations of a context with some
 * PEs, before every fence and quiet. Returns false if this operation is not held back. */
bool late_hold(const struct op *op);
void late_deliver(int ctx, uint8_t peers);
void call_rma(const struct op *op, const void *source); /* NULL: the operation's own */
void call_amo(const struct op *op);

/* Threads of this PE share an operation, each on a private context of its own. */
void threads_move(const struct op *op, const struct rma_routines *row, void *dest,
                  const void *source);
void threads_crowd(const struct op *op);

/* Calls quiet on the contexts in a mask. */
void execute_quiets(uint16_t ctxs);

static inline uint8_t everybody(void) {
    return (uint8_t)((1 << npes) - 1);
}

/* Called at the end of an epoch, when all is quiet: checks the values that were read from words
 * with several outcomes, and the words themselves, whose values become the model's. */
void crowds_check(const struct op *last);

/* Checks that a pSync has its initial values. */
void psyncs_check(const struct op *last);

#endif
