/* SPDX-License-Identifier: BSD-3-Clause */
/* A wavefront that passes through all PEs in a pipeline: for each row a PE waits for the word of
 * the previous PE, computes for about a microsecond, and sets the word of the next PE. The first
 * run begins right after shmem_init, when everything is new, and takes some milliseconds, like the
 * next ones; the last one is longer. Microseconds per row; the limit is the computation alone.
 * bench/wavefront.py runs it beside other programs. */
#include "bench.h"

enum { ROWS = 4000, LONG_ROWS = 25 * ROWS, RUNS = 9, STEPS = 100 };

static long word; /* symmetric; the number of rows that the previous PE has finished */
static volatile double value = 1;

static void compute(void) {
    for (int i = 0; i < STEPS; i++)
        value = value * 0.5 + 1;
}

static double run(long rows) {
    static long row;
    int me = shmem_my_pe(), npes = shmem_n_pes();
    shmem_barrier_all();
    double begin = bench_now();
    for (long end = row + rows; row < end;) {
        row++;
        if (me > 0)
            shmem_long_wait_until(&word, SHMEM_CMP_GE, row);
        compute();
        if (me < npes - 1)
            shmem_long_atomic_set(&word, row, me + 1);
    }
    shmem_barrier_all();
    return (bench_now() - begin) * 1e6 / (double)rows;
}

static double run_alone(void) {
    double begin = bench_now();
    for (int row = 0; row < ROWS; row++)
        compute();
    return (bench_now() - begin) * 1e6 / ROWS;
}

int main(void) {
    double next[RUNS], alone[RUNS];
    shmem_init();
    double first = run(ROWS);
    for (int i = 0; i < RUNS; i++) {
        next[i] = run(ROWS);
        alone[i] = run_alone();
    }
    double lasting = run(LONG_ROWS), limit = bench_median(alone, RUNS);
    bench_report("wavefront, first run", first, limit, "us");
    bench_report("wavefront, next runs", bench_median(next, RUNS), limit, "us");
    bench_report("wavefront, long run", lasting, limit, "us");
    shmem_finalize();
    return 0;
}
