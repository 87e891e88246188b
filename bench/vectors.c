/* SPDX-License-Identifier: BSD-3-Clause */
/* The vectors of weft.h on all PEs: blocks of 1 KiB, 64 KiB and 1 MiB, in symmetric memory and, in
 * rows that say "private", in private memory. The value is that of the slowest PE. If the first and
 * the last PE are on hosts with a network "eth0" of their own (tests/hosts/rig.py), rows that say
 * "crosses" have the bytes that the two hosts send in a call.
 *
 *     tests/hosts/rig.py -n 2 build/bin/oshrun --hosts h0:4,h1:4 build/bench/vectors */
#include <shmem.h>
#include <string.h>
#include <weft.h>
#include "bench.h"

enum { REPEATS = 9, LARGEST = 1 << 20, PES_MAX = 64 };

static char *dest, *source; /* LARGEST bytes for each PE */
static double times[PES_MAX], sent[PES_MAX], mine;
static size_t bytes; /* of a block */
static int me, npes;

typedef int vector(void);

static int broadcast(void) {
    return weft_broadcast(SHMEM_TEAM_WORLD, dest, source, bytes / 4, WEFT_F32, 0, WEFT_STREAM_HOST);
}
static int all_gather(void) {
    return weft_all_gather(SHMEM_TEAM_WORLD, dest, source, bytes / 4, WEFT_F32, WEFT_STREAM_HOST);
}
static int all_to_all(void) {
    return weft_all_to_all(SHMEM_TEAM_WORLD, dest, source, bytes / 4, WEFT_F32, WEFT_STREAM_HOST);
}
static int all_reduce(void) {
    return weft_all_reduce(SHMEM_TEAM_WORLD, dest, source, bytes / 4, WEFT_F32, WEFT_SUM,
                           WEFT_STREAM_HOST);
}
static int all_reduce_bf16(void) {
    return weft_all_reduce(SHMEM_TEAM_WORLD, dest, source, bytes / 2, WEFT_BF16, WEFT_SUM,
                           WEFT_STREAM_HOST);
}
static int reduce_scatter(void) {
    return weft_reduce_scatter(SHMEM_TEAM_WORLD, dest, source, bytes / 4, WEFT_F32, WEFT_SUM,
                               WEFT_STREAM_HOST);
}
static int reduce_scatter_bf16(void) {
    return weft_reduce_scatter(SHMEM_TEAM_WORLD, dest, source, bytes / 2, WEFT_BF16, WEFT_SUM,
                               WEFT_STREAM_HOST);
}

/* Returns the bytes that this host's network has sent; 0 if there is no such network. */
static double host_sent(void) {
    char line[512];
    double received, count = 0;
    FILE *table = fopen("/proc/net/dev", "r");
    while (table && fgets(line, sizeof line, table)) {
        char *counts = strstr(line, "eth0:");
        if (counts)
            sscanf(counts + 5, "%lf %*s %*s %*s %*s %*s %*s %*s %lf", &received, &count);
    }
    if (table)
        fclose(table);
    return count;
}

/* Returns the seconds of one call: the median on the slowest PE. */
static double measure(vector *call, long n, double *crossed) {
    double samples[REPEATS], slowest = 0;
    call();
    shmem_barrier_all();
    double before = host_sent();
    for (int i = 0; i < REPEATS; i++) {
        shmem_barrier_all();
        double begin = bench_now();
        for (long k = 0; k < n; k++)
            if (call())
                shmem_global_exit(1);
        samples[i] = (bench_now() - begin) / (double)n;
    }
    shmem_barrier_all();
    double count = (host_sent() - before) / (double)(REPEATS * n);
    mine = bench_median(samples, REPEATS);
    shmem_double_put(&times[me], &mine, 1, 0);
    shmem_double_put(&sent[me], &count, 1, 0);
    shmem_barrier_all();
    for (int pe = 0; pe < npes; pe++)
        slowest = times[pe] > slowest ? times[pe] : slowest;
    *crossed = npes > 1 ? sent[0] + sent[npes - 1] : 0;
    shmem_barrier_all();
    return slowest;
}

static void rows(const char *name, vector *call, const char *memory) {
    static const struct {
        size_t bytes;
        const char *name;
        long n;
    } sizes[] = {{1 << 10, "1 KiB", 200}, {64 << 10, "64 KiB", 30}, {LARGEST, "1 MiB", 3}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        char row[64];
        double crossed;
        bench_progress(me, name);
        bytes = sizes[i].bytes;
        double value = measure(call, sizes[i].n, &crossed);
        snprintf(row, sizeof row, "%s %s%s", name, sizes[i].name, memory);
        bench_report(row, 1e6 * value, 0, "us");
        snprintf(row, sizeof row, "%s %s%s crosses", name, sizes[i].name, memory);
        if (crossed > 0)
            bench_report(row, crossed / 1024, 0, "KiB");
    }
}

static void all_rows(const char *memory) {
    rows("broadcast", broadcast, memory);
    rows("all_gather", all_gather, memory);
    rows("all_to_all", all_to_all, memory);
    rows("all_reduce", all_reduce, memory);
    rows("all_reduce bf16", all_reduce_bf16, memory);
    rows("reduce_scatter", reduce_scatter, memory);
    rows("reduce_scatter bf16", reduce_scatter_bf16, memory);
}

int main(void) {
    shmem_init();
    me = shmem_my_pe();
    npes = shmem_n_pes();
    size_t all = (size_t)npes * LARGEST;
    dest = shmem_calloc(all, 1);
    source = shmem_calloc(all, 1);
    if (npes > PES_MAX || !dest || !source)
        shmem_global_exit(1);
    all_rows("");
    dest = calloc(all, 1);
    source = calloc(all, 1);
    if (!dest || !source)
        shmem_global_exit(1);
    all_rows(" private");
    shmem_finalize();
    return 0;
}
