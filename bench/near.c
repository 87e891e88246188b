/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls of PE 0 to PE 1, which is near, in a job with other hosts and in one without: these must
 * cost the same (bench/hosts/run.py runs both). 3 PEs. */
#include "bench.h"

enum { SAMPLES = 41 };

static uint64_t static_word;
static uint64_t *word, value = 1;

/* n times */
typedef void loop(long n);

static void p(long n) {
    for (long i = 0; i < n; i++)
        shmem_uint64_p(word, (uint64_t)i, 1);
}

static void put(long n) {
    for (long i = 0; i < n; i++)
        shmem_putmem(word, &value, sizeof value, 1);
}

static void put_static(long n) {
    for (long i = 0; i < n; i++)
        shmem_uint64_put(&static_word, &value, 1, 1);
}

static void put_quiet(long n) {
    for (long i = 0; i < n; i++) {
        shmem_uint64_put(word, &value, 1, 1);
        shmem_quiet();
    }
}

static void get(long n) {
    for (long i = 0; i < n; i++)
        shmem_uint64_g(word, 1);
}

static void fetch_add(long n) {
    for (long i = 0; i < n; i++)
        shmem_uint64_atomic_fetch_add(word, 1, 1);
}

static void report(const char *row, loop *body) {
    double samples[SAMPLES];
    long n = 20000;
    body(n);
    for (int i = 0; i < SAMPLES; i++) {
        double begin = bench_now();
        body(n);
        samples[i] = 1e9 * (bench_now() - begin) / (double)n;
    }
    bench_report(row, bench_median(samples, SAMPLES), 0, "ns");
}

int main(void) {
    shmem_init();
    if (shmem_n_pes() != 3)
        shmem_global_exit(2);
    word = shmem_calloc(1, sizeof *word);
    if (shmem_my_pe() == 0) {
        report("near: p 8 B", p);
        report("near: putmem 8 B", put);
        report("near: put 8 B, static", put_static);
        report("near: put 8 B + quiet", put_quiet);
        report("near: g 8 B", get);
        report("near: fetch_add", fetch_add);
    }
    shmem_barrier_all();
    shmem_finalize();
    return 0;
}
