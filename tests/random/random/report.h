/* SPDX-License-Identifier: BSD-3-Clause */
/* The output of a run: counts by class, and a divergence with all that is needed to repeat it. */
#ifndef TESTS_RANDOM_REPORT_H
#define TESTS_RANDOM_REPORT_H

#include "draw.h"

struct run {
    uint64_t seed, ops, counts[CLASSES];
    uint32_t epoch;
    struct op log[EPOCH_OPS_MAX]; /* the epoch's operations until now */
    uint32_t logged;
};
extern struct run run;

/* Ends the job, with the operation that found a divergence, and a text that describes it. */
_Noreturn void diverge(const struct op *op, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* As diverge, for bytes at `offset` of this PE's symmetric memory, with their earlier accesses. */
_Noreturn void diverge_at(const struct op *op, uint32_t offset);

/* Prints a line for an operation on stdout. */
void report_op(const struct op *op);

/* Prints on a hang, from a signal handler, what this PE is doing. */
void report_watch(unsigned seconds);

/* Prints the table of counts. Returns false if a class has less than its share. */
bool report_counts(void);

#endif
