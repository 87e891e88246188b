/* SPDX-License-Identifier: BSD-3-Clause */
/* The rows that are measured from one PE to another, far or near: with OpenSHMEM (bench/far.c), and
 * with the layers below it (bench/hosts). */
#ifndef BENCH_FAR_ROWS_H
#define BENCH_FAR_ROWS_H

#include <stddef.h>
#include "clock.h"

enum { SAMPLES = 15, LARGEST = 1 << 20, LARGE_TURNS = 50 };

enum row {
    PUT_QUIET,
    GET,
    FETCH_ADD,
    PUT_SIGNAL,
    PUT_SIGNAL_BLOCK,
    BARRIER,
    PUT_MANY,
    PUT_LARGE,
    GET_LARGE,
    ROWS
};

/* A loop of n turns, in which one side or both take part. */
typedef void loop(long n);

static const struct far_row {
    const char *name;
    size_t bytes;
    int ways;    /* one-way trips of a word that are the lower limit; 0: no limit */
    double told; /* share of a turn that is reported; half of a round trip is one way */
} far_rows[ROWS] = {
    [PUT_QUIET] = {"put 8 B + quiet", 8, 2, 1},
    [GET] = {"get 8 B", 8, 2, 1},
    [FETCH_ADD] = {"fetch_add", 8, 2, 1},
    [PUT_SIGNAL] = {"put 8 B with signal, one way", 8, 1, 0.5},
    [PUT_SIGNAL_BLOCK] = {"put 4 KiB with signal, one way", 4096, 1, 0.5},
    [BARRIER] = {"barrier_all", 8, 1, 1},
    [PUT_MANY] = {"put 8 B, many, each", 8, 0, 1},
    [PUT_LARGE] = {"put 1 MiB", LARGEST, 0, 1},
    [GET_LARGE] = {"get 1 MiB", LARGEST, 0, 1},
};

static size_t bytes; /* of the row that is measured */

/* Both sides run each row that has a loop. `meet` synchronises them, and `report` prints a row. */
static void far_rows_measure(loop *const loops[ROWS], long turns, void (*meet)(void),
                             void (*report)(const struct far_row *row, double value,
                                            const char *unit)) {
    for (int i = 0; i < ROWS; i++) {
        const struct far_row *row = &far_rows[i];
        long n = row->bytes == LARGEST ? LARGE_TURNS : turns;
        double samples[SAMPLES];
        if (!loops[i])
            continue;
        bytes = row->bytes;
        meet();
        loops[i](n / 10 + 1);
        for (int k = 0; k < SAMPLES; k++) {
            double begin = bench_now();
            loops[i](n);
            samples[k] = (bench_now() - begin) / (double)n;
        }
        meet();
        double turn = bench_median(samples, SAMPLES);
        if (row->bytes == LARGEST)
            report(row, 1e-9 * LARGEST / turn, "GB/s");
        else
            report(row, 1e6 * row->told * turn, "us");
    }
}

#endif
