/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives on all PEs: broadcast, alltoall, fcollect and sum_reduce of 8 bytes, 64 KiB and 4 MiB
 * per PE (alltoall: per pair), consecutively, beside the time of memcpy for the bytes that each PE
 * has to read. Standard OpenSHMEM, with teams if the library has them, otherwise with active sets.
 * The value is that of the slowest PE. */
#include <shmem.h>
#include <stdbool.h>
#include <string.h>
#include "bench.h"

enum { REPEATS = 15, LARGEST = 4 << 20, PES_MAX = 64 };

#define WITH_TEAMS (SHMEM_MAJOR_VERSION > 1 || SHMEM_MINOR_VERSION >= 5)
#if !WITH_TEAMS
#define SYNCS 2 /* used alternately, as the specification requires */
static long psync[SYNCS][SHMEM_REDUCE_SYNC_SIZE];
static double *pwrk;
#define ALL 0, 0, npes, psync[turn++ % SYNCS]
static unsigned turn;
#endif

static double *dest, *source; /* LARGEST bytes per PE */
static double times[PES_MAX], mine;
static size_t nelems; /* of 8 bytes */
static int me, npes;

typedef void loop(long n);

static void broadcast(long n) {
    for (long i = 0; i < n; i++) {
#if WITH_TEAMS
        shmem_double_broadcast(SHMEM_TEAM_WORLD, dest, source, nelems, 0);
#else
        shmem_broadcast64(dest, source, nelems, 0, ALL);
#endif
    }
}

static void alltoall(long n) {
    for (long i = 0; i < n; i++) {
#if WITH_TEAMS
        shmem_double_alltoall(SHMEM_TEAM_WORLD, dest, source, nelems);
#else
        shmem_alltoall64(dest, source, nelems, ALL);
#endif
    }
}

static void fcollect(long n) {
    for (long i = 0; i < n; i++) {
#if WITH_TEAMS
        shmem_double_fcollect(SHMEM_TEAM_WORLD, dest, source, nelems);
#else
        shmem_fcollect64(dest, source, nelems, ALL);
#endif
    }
}

static void sum_reduce(long n) {
    for (long i = 0; i < n; i++) {
#if WITH_TEAMS
        shmem_double_sum_reduce(SHMEM_TEAM_WORLD, dest, source, nelems);
#else
        shmem_double_sum_to_all(dest, source, (int)nelems, 0, 0, npes, pwrk, psync[turn++ % SYNCS]);
#endif
    }
}

static const double *read_from(int pe) {
    const double *near = shmem_ptr(source, pe);
    return near ? near : source;
}

/* The limits copy the root's array, a block of each PE's array, or all PEs' arrays. */
static void copy_root(long n) {
    for (long i = 0; i < n; i++) {
        memcpy(dest, read_from(0), nelems * sizeof *dest);
        __asm__ volatile("" : : : "memory");
    }
}

static void copy_blocks(long n) {
    size_t block = (size_t)me * nelems;
    for (long i = 0; i < n; i++)
        for (int pe = 0; pe < npes; pe++) {
            memcpy(dest + (size_t)pe * nelems, read_from(pe) + block, nelems * sizeof *dest);
            __asm__ volatile("" : : : "memory");
        }
}

static void copy_all(long n) {
    for (long i = 0; i < n; i++)
        for (int pe = 0; pe < npes; pe++) {
            memcpy(dest + (size_t)pe * nelems, read_from(pe), nelems * sizeof *dest);
            __asm__ volatile("" : : : "memory");
        }
}

/* Returns the seconds of one call: the median on the slowest PE. */
static double measure(loop *body, long n) {
    double samples[REPEATS], slowest = 0;
    body(n / 10 + 1);
    for (int i = 0; i < REPEATS; i++) {
        shmem_barrier_all();
        double begin = bench_now();
        body(n);
        samples[i] = (bench_now() - begin) / (double)n;
    }
    mine = bench_median(samples, REPEATS);
    shmem_double_put(&times[me], &mine, 1, 0);
    shmem_barrier_all();
    for (int pe = 0; pe < npes; pe++)
        if (times[pe] > slowest)
            slowest = times[pe];
    shmem_barrier_all();
    return slowest;
}

static void report(const char *collective, const char *size, double value, double limit) {
    char row[64];
    snprintf(row, sizeof row, "%s %s", collective, size);
    bench_report(row, 1e6 * value, 1e6 * limit, "us");
}

static void rows(const char *collective, loop *body, loop *limit) {
    static const struct {
        size_t bytes;
        const char *name;
        long n;
    } sizes[] = {{8, "8 B", 20000}, {64 << 10, "64 KiB", 2000}, {LARGEST, "4 MiB", 20}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        bench_progress(me, collective);
        nelems = sizes[i].bytes / sizeof *dest;
        bool copies = limit && sizes[i].bytes > 8;
        double value = measure(body, sizes[i].n);
        report(collective, sizes[i].name, value, copies ? measure(limit, sizes[i].n) : 0);
    }
}

int main(void) {
    shmem_init();
    me = shmem_my_pe();
    npes = shmem_n_pes();
    dest = shmem_malloc((size_t)npes * LARGEST);
    source = shmem_malloc((size_t)npes * LARGEST);
    if (npes > PES_MAX || !dest || !source)
        shmem_global_exit(1);
#if !WITH_TEAMS
    pwrk = shmem_malloc(LARGEST);
    for (int i = 0; i < SYNCS * SHMEM_REDUCE_SYNC_SIZE; i++)
        ((long *)psync)[i] = SHMEM_SYNC_VALUE;
#endif
    for (size_t i = 0; i < (size_t)npes * LARGEST / sizeof *source; i++) {
        source[i] = (double)i + me;
        dest[i] = 0;
    }
    shmem_barrier_all();
    rows("broadcast", broadcast, copy_root);
    rows("alltoall", alltoall, copy_blocks);
    rows("fcollect", fcollect, copy_all);
    rows("sum_reduce", sum_reduce, NULL);
    shmem_finalize();
    return 0;
}
