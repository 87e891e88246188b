/* SPDX-License-Identifier: BSD-3-Clause */
/* The cost of one PE among many, depending on its accesses to the others: memory, descriptors, and
 * a barrier. bench/hosts/scale.py runs it over hosts.
 *
 *     footprint [kill FILE]      the last PE writes the time to FILE, and is killed at once
 *
 * PE 0 prints one JSON object per stage: medians of all PEs, and the largest value. Only standard
 * OpenSHMEM. */
#include <dirent.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>
#include "bench.h"

enum { PES_MAX = 1024, SAMPLES = 15, BARRIERS = 20 };

enum { PSS_KIB, OWN_KIB, DESCRIPTORS, SOCKETS, COUNTS };
static const char *const names[COUNTS] = {"pss_kib", "own_kib", "descriptors", "sockets"};

static long counts[COUNTS], of_all[PES_MAX * COUNTS], words[PES_MAX];
static int me, npes;

/* Returns the value of a line of smaps_rollup, in KiB. */
static long mapped(const char *text, const char *name) {
    const char *line = strstr(text, name);
    return line ? strtol(line + strlen(name), NULL, 10) : 0;
}

/* Memory that no other process maps belongs to this PE alone. */
static void count_memory(void) {
    static char text[4096];
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    size_t bytes = file ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file)
        fclose(file);
    text[bytes] = '\0';
    counts[PSS_KIB] = mapped(text, "\nPss:");
    counts[OWN_KIB] = mapped(text, "\nPrivate_Clean:") + mapped(text, "\nPrivate_Dirty:");
}

static void count_descriptors(void) {
    static const char folder[] = "/proc/self/fd/";
    counts[DESCRIPTORS] = counts[SOCKETS] = 0;
    DIR *all = opendir(folder);
    for (struct dirent *one; all && (one = readdir(all)) != NULL;) {
        char path[sizeof folder + NAME_MAX], target[64] = "";
        snprintf(path, sizeof path, "%s%s", folder, one->d_name);
        if (readlink(path, target, sizeof target - 1) < 0)
            continue;
        counts[DESCRIPTORS]++;
        counts[SOCKETS] += strncmp(target, "socket:", strlen("socket:")) == 0;
    }
    if (all)
        closedir(all);
}

static double barrier_us(void) {
    double samples[SAMPLES];
    for (int i = 0; i < SAMPLES; i++) {
        double begin = bench_now();
        for (int j = 0; j < BARRIERS; j++)
            shmem_barrier_all();
        samples[i] = (bench_now() - begin) / BARRIERS * 1e6;
    }
    return bench_median(samples, SAMPLES);
}

static void print_counts(void) {
    for (int i = 0; i < COUNTS; i++) {
        double values[PES_MAX], most = 0;
        for (int pe = 0; pe < npes; pe++) {
            values[pe] = (double)of_all[pe * COUNTS + i];
            most = values[pe] > most ? values[pe] : most;
        }
        printf(", \"%s\": %.0f, \"%s_most\": %.0f", names[i], bench_median(values, npes), names[i],
               most);
    }
}

/* Counts before a barrier is measured, which makes channels. PE 0 fetches the counts of all PEs, so
 * it is the last to have more channels. */
static void report(const char *stage) {
    count_memory();
    count_descriptors();
    shmem_barrier_all();
    for (int pe = 0; me == 0 && pe < npes; pe++)
        shmem_getmem(&of_all[pe * COUNTS], counts, sizeof counts, pe);
    double us = barrier_us();
    if (me != 0)
        return;
    printf("{\"stage\": \"%s\", \"pes\": %d, \"barrier_us\": %.4g", stage, npes, us);
    print_counts();
    printf("}\n");
    fflush(stdout);
}

/* Puts to this many PEs after this one, so this PE receives as many puts. */
static void put_to(int others) {
    for (int distance = 1; distance <= others; distance++)
        shmem_long_p(&words[me], distance, (me + distance) % npes);
    shmem_barrier_all();
}

/* All hosts of one machine share its clock. */
static void die(const char *path) {
    FILE *file = fopen(path, "w");
    if (!file)
        shmem_global_exit(1);
    fprintf(file, "%.9f\n", bench_now());
    fclose(file);
    kill(getpid(), SIGKILL);
}

int main(int argc, char **argv) {
    shmem_init();
    me = shmem_my_pe();
    npes = shmem_n_pes();
    if (npes > PES_MAX)
        shmem_global_exit(1);
    shmem_barrier_all();
    if (argc == 3 && strcmp(argv[1], "kill") == 0) {
        if (me == npes - 1)
            die(argv[2]);
        shmem_barrier_all();
    }
    report("barriers");
    put_to(npes - 1);
    report("all to all");
    shmem_finalize();
    return 0;
}
