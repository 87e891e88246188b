/* SPDX-License-Identifier: BSD-3-Clause */
/* What the run says: counts by class, and a divergence with all that is needed to see it again. */
#ifndef TESTS_RANDOM_REPORT_H
#define TESTS_RANDOM_REPORT_H

#include "draw.h"

struct run {
    uint64_t seed, ops, counts[CLASSES];
    uint32_t epoch;
    struct op log[EPOCH_OPS_MAX]; /* the epoch's, until now */
    uint32_t logged;
};
extern struct run run;

/* Ends the job: the operation that saw it, and what it saw. */
_Noreturn void diverge(const struct op *op, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The same for bytes at `offset` of this PE's symmetric memory, with who was there before. */
_Noreturn void diverge_at(const struct op *op, uint32_t offset);

/* A line for an operation, on stdout. */
void report_op(const struct op *op);

/* Says on a hang, from a signal handler, what this PE was doing. */
void report_watch(unsigned seconds);

/* Prints the table of counts; false if a class has less than its share. */
bool report_counts(void);

#endif
