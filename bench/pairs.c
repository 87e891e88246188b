/* SPDX-License-Identifier: BSD-3-Clause */
/* Pairs of PEs of two hosts: PE i and PE i + n/2 of n, first the last pair alone and then all at
 * once, while the targets wait in the library and while they compute. On two hosts this compares a
 * host proxy with one engine per PE (WEFT_PROXIES). */
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include "bench.h"

enum { SAMPLES = 9, LARGE = 1 << 20, FETCHES = 200, PUTS = 2000, LARGE_PUTS = 8 };

static unsigned char *remote, *local;
static uint64_t word, over;
static int me, npes, half, partner;

/* The first PE of a pair makes n operations on the second. */
typedef void work(int n);

static void fetch(int n) {
    for (int i = 0; i < n; i++)
        shmem_uint64_atomic_fetch_add(&word, 1, partner);
}

static void put_small(int n) {
    for (int i = 0; i < n; i++)
        shmem_putmem(remote, local, 8, partner);
    shmem_quiet();
}

static void put_large(int n) {
    for (int i = 0; i < n; i++)
        shmem_putmem(remote, local, LARGE, partner);
    shmem_quiet();
}

/* Polls a word of its own, outside the library, until the pair's first PE reports the end. */
static void compute(uint64_t until) {
    while (atomic_load_explicit((_Atomic uint64_t *)&over, memory_order_acquire) < until)
        continue;
}

/* Returns the median seconds of one operation, of the slowest pair. */
static double measure(work *body, int n, bool all, bool computes) {
    static double seconds, slowest;
    static uint64_t round;
    double samples[SAMPLES];
    bool works = me < half && (all || me == half - 1);
    for (int i = 0; i < SAMPLES; i++) {
        round++;
        shmem_barrier_all();
        double begin = bench_now();
        if (works)
            body(n);
        seconds = works ? (bench_now() - begin) / n : 0;
        if (me < half)
            shmem_uint64_p(&over, round, partner);
        else if (computes)
            compute(round);
        shmem_double_max_reduce(SHMEM_TEAM_WORLD, &slowest, &seconds, 1);
        samples[i] = slowest;
    }
    return bench_median(samples, SAMPLES);
}

static void report(const char *what, work *body, int n, bool rate) {
    static const char *const who[] = {"one pair", "all pairs"};
    for (int all = 0; all < 2; all++)
        for (int computes = 0; computes < 2; computes++) {
            char row[96];
            double seconds = measure(body, n, all, computes);
            snprintf(row, sizeof row, "%s, %s, targets %s", what, who[all],
                     computes ? "compute" : "wait");
            bench_report(row, rate ? 1e-9 * LARGE / seconds : 1e6 * seconds, 0,
                         rate ? "GB/s" : "us");
        }
}

int main(void) {
    shmem_init();
    me = shmem_my_pe();
    npes = shmem_n_pes();
    half = npes / 2;
    partner = (me + half) % npes;
    remote = shmem_malloc(LARGE);
    local = malloc(LARGE);
    if (npes % 2 || !remote || !local)
        shmem_global_exit(1);
    memset(local, 1, LARGE);
    report("fetch-add", fetch, FETCHES, false);
    report("put 8 B, many", put_small, PUTS, false);
    report("put 1 MiB", put_large, LARGE_PUTS, true);
    shmem_finalize();
    return 0;
}
