/* SPDX-License-Identifier: BSD-3-Clause */
/* A flag that passes around all PEs, each of which polls its own: with wait_until, and with each
 * kind of call that programs poll with. If PEs share processors, a loop that does not yield its
 * processor delays the flag. Microseconds per hop; the limit is wait_until's. */
#include "bench.h"

static uint64_t flag; /* symmetric; the number of the present round */

static void by_wait_until(uint64_t round) {
    shmem_uint64_wait_until(&flag, SHMEM_CMP_EQ, round);
}

static void by_test(uint64_t round) {
    while (!shmem_uint64_test(&flag, SHMEM_CMP_EQ, round))
        continue;
}

static void by_test_met(uint64_t round) {
    while (shmem_uint64_test(&flag, SHMEM_CMP_NE, round))
        continue;
}

static void by_g(uint64_t round) {
    while (shmem_uint64_g(&flag, shmem_my_pe()) != round)
        continue;
}

static void by_get(uint64_t round) {
    uint64_t seen;
    do
        shmem_uint64_get(&seen, &flag, 1, shmem_my_pe());
    while (seen != round);
}

static void by_fetch(uint64_t round) {
    while (shmem_uint64_atomic_fetch(&flag, shmem_my_pe()) != round)
        continue;
}

static void by_fetch_add(uint64_t round) {
    while (shmem_uint64_atomic_fetch_add(&flag, 0, shmem_my_pe()) != round)
        continue;
}

static void by_compare_swap(uint64_t round) {
    while (shmem_uint64_atomic_compare_swap(&flag, round, round, shmem_my_pe()) != round)
        continue;
}

static void by_signal_fetch(uint64_t round) {
    while (shmem_signal_fetch(&flag) != round)
        continue;
}

static const struct way {
    const char *name;
    void (*await)(uint64_t round);
} ways[] = {
    {"wait_until", by_wait_until},
    {"test in vain", by_test},
    {"test that is met", by_test_met},
    {"g", by_g},
    {"get", by_get},
    {"atomic_fetch", by_fetch},
    {"fetch_add of 0", by_fetch_add},
    {"compare_swap", by_compare_swap},
    {"signal_fetch", by_signal_fetch},
};
enum { WAYS = sizeof ways / sizeof *ways, SAMPLES = 9 };

static uint64_t round_now; /* the last round, the same on all PEs */

/* Returns microseconds per hop over some rounds. */
static double run_rounds(void (*await)(uint64_t round), int rounds) {
    int me = shmem_my_pe(), npes = shmem_n_pes();
    shmem_barrier_all();
    double begin = bench_now();
    for (int i = 0; i < rounds; i++) {
        uint64_t round = ++round_now;
        if (me != 0)
            await(round);
        shmem_uint64_atomic_set(&flag, round, (me + 1) % npes);
        if (me == 0)
            await(round);
    }
    return (bench_now() - begin) * 1e6 / rounds / npes;
}

int main(int argc, char **argv) {
    int rounds = argc > 1 ? atoi(argv[1]) : 300;
    double samples[WAYS][SAMPLES], limit = 0;
    shmem_init();
    for (int i = 0; i < SAMPLES; i++)
        for (int way = 0; way < WAYS; way++) {
            bench_progress(shmem_my_pe(), ways[way].name);
            samples[way][i] = run_rounds(ways[way].await, rounds);
        }
    for (int way = 0; way < WAYS; way++) {
        char row[64];
        double median = bench_median(samples[way], SAMPLES);
        snprintf(row, sizeof row, "a flag round all PEs by %s", ways[way].name);
        bench_report(row, median, way ? limit : 0, "us");
        limit = way ? limit : median;
    }
    shmem_finalize();
    return 0;
}
