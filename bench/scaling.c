/* SPDX-License-Identifier: BSD-3-Clause */
/* The cost of a barrier, a small all-to-all and a small reduction by the number of PEs, also if PEs
 * share processors. JSON lines: bench_report. */
#include <shmem.h>
#include "bench.h"

enum { REPEATS = 7, PES_MAX = 1024 };

static long dest[PES_MAX], source[PES_MAX];

typedef void call(void);

static void alltoall(void) {
    shmem_long_alltoall(SHMEM_TEAM_WORLD, dest, source, 1);
}

static void sum_reduce(void) {
    shmem_long_sum_reduce(SHMEM_TEAM_WORLD, dest, source, 1);
}

static double seconds(call *body, long n) {
    shmem_barrier_all();
    double begin = bench_now();
    for (long i = 0; i < n; i++)
        body();
    return (bench_now() - begin) / (double)n;
}

/* Returns as many repetitions as take a tenth of a second, the same on all PEs. */
static long repetitions(call *body) {
    static long mine, least;
    double once = seconds(body, 10);
    mine = once < 1e-6 ? 100000 : (long)(0.1 / once) + 1;
    shmem_long_min_reduce(SHMEM_TEAM_WORLD, &least, &mine, 1);
    return least;
}

static void measure(const char *row, call *body) {
    double samples[REPEATS];
    long n = repetitions(body);
    bench_progress(shmem_my_pe(), row);
    for (int i = 0; i < REPEATS; i++)
        samples[i] = seconds(body, n);
    bench_report(row, 1e6 * bench_median(samples, REPEATS), 0, "us");
}

int main(void) {
    shmem_init();
    if (shmem_n_pes() > PES_MAX)
        shmem_global_exit(1);
    measure("barrier_all by PEs", shmem_barrier_all);
    measure("alltoall 8 B by PEs", alltoall);
    measure("sum_reduce 8 B by PEs", sum_reduce);
    shmem_finalize();
}
