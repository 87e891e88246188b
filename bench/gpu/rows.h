/* SPDX-License-Identifier: BSD-3-Clause */
/* The rows that several libraries have, in C and in C++, with the calls that each program provides.
 * A program defines `meet` and sets the variables before its first row. */
#ifndef BENCH_GPU_ROWS_H
#define BENCH_GPU_ROWS_H

#include "gpu.h"

/* Sizes for bandwidths, and for payloads of signals. */
static const size_t copy_sizes[] = {4 << 10, 64 << 10, 1 << 20, 16 << 20, 256 << 20};
static const size_t signal_sizes[] = {8, 16 << 10};
#define LENGTH(array) ((int)(sizeof(array) / sizeof *(array)))

static const char *library;
static char *source, *dest; /* GPU memory that peers can access, of the largest copy */
static size_t bytes;        /* of the measured call */

/* Waits until all PEs have arrived, and their streams are empty. */
static void meet(void);

static inline size_t largest_copy(void) {
    return copy_sizes[LENGTH(copy_sizes) - 1];
}

static inline void row(const char *text, double value, const char *unit) {
    report(text, value, unit, library);
}

static inline void host_latencies(enqueue *put, enqueue *p, enqueue *g) {
    if (me == 0) {
        row("host put 8 B + quiet", host_us(put, 500), "us");
        row("host p 8 B + quiet", host_us(p, 500), "us");
        row("host g 8 B", host_us(g, 500), "us");
    }
    meet();
}

static inline void barriers(enqueue *barrier) {
    row("barrier on a stream, in graphs", graph_us(barrier, 50), "us");
    meet();
    row("barrier on a stream, eager", eager_us(barrier, 200), "us");
    meet();
}

/* Between PEs 0 and 1. A replayed graph repeats its values, and no two consecutive values are
 * equal. */
static uint64_t signals; /* values up to here have been used */

static inline uint64_t signal_value(int i) {
    return signals + (uint64_t)i + 1;
}

static inline void ping_pongs(enqueue *ping_pong) {
    char text[64];
    for (int k = 0; k < LENGTH(signal_sizes); k++) {
        bytes = signal_sizes[k];
        snprintf(text, sizeof text, "signal ping-pong %s, one way", size_name(bytes));
        if (me < 2)
            row(text, 0.5 * graph_us(ping_pong, 50), "us");
        signals += 100;
        meet();
    }
}

/* One direction, by PE 0 only. */
static inline void bandwidth(const char *name, enqueue *body, bool one_way) {
    char text[64];
    for (int k = 0; k < LENGTH(copy_sizes); k++) {
        bytes = copy_sizes[k];
        snprintf(text, sizeof text, "%s %s, %s", name, size_name(bytes),
                 one_way ? "one way" : "both ways");
        if (me == 0 || !one_way)
            row(text, gigabytes_per_second(bytes, graph_us(body, calls_for(bytes))), "GB/s");
        meet();
    }
}

static inline void bandwidths(enqueue *put, enqueue *get) {
    bandwidth("put", put, true);
    bandwidth("put", put, false);
    bandwidth("get", get, true);
    bandwidth("get", get, false);
}

#endif
