/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls the library for an operation that this PE takes part in, and compares what comes back. */
#ifndef TESTS_RANDOM_EXECUTE_H
#define TESTS_RANDOM_EXECUTE_H

#include "model.h"
#include "report.h"

/* Allocates what lasts for the whole run; collective. */
void execute_open(void);

void execute(const struct op *op, struct outcome outcome);

/* Parts of it. */
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

/* Where results come back to; what is under way there; and what a quiet of a context with some PEs
 * has completed. */
extern unsigned char landing[LANDING_BYTES];
void landing_clear(const struct op *op, uint32_t bytes);
void landing_await(const struct op *op, uint32_t bytes);
void landing_check(const struct op *op, uint32_t offset, uint32_t bytes);
void landing_quiet(int ctx, uint8_t peers);

/* Keeps an operation until late_deliver asks for what is on its way on a context to some PEs:
 * before every fence and quiet. False: this one is not late. */
bool late_hold(const struct op *op);
void late_deliver(int ctx, uint8_t peers);
void call_rma(const struct op *op, const void *source); /* NULL: the operation's own */
void call_amo(const struct op *op);

/* Threads of this PE do an operation together, each on a private context of its own. */
void threads_move(const struct op *op, const struct rma_routines *row, void *dest,
                  const void *source);
void threads_crowd(const struct op *op);

/* Quiet of the contexts in a mask. */
void execute_quiets(uint16_t ctxs);

static inline uint8_t everybody(void) {
    return (uint8_t)((1 << npes) - 1);
}

/* At the end of an epoch, when all is quiet: the values seen of words with several outcomes, and
 * the words themselves, which become the model's. */
void crowds_check(const struct op *last);

/* A pSync is as it was before. */
void psyncs_check(const struct op *last);

#endif
