/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: PEs that are in one kind of call until something happens to them.
 *
 *   phases KIND
 *
 * Each PE prints "pid PE PID" when it is in it, or, for init, before. For deaths.t; no test of its
 * own. PEs: none */
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NELEMS = 20000 };

static long many[NELEMS], source[NELEMS];
static int me, npes;

static void put(void) {
    shmem_long_put(many, source, NELEMS, (me + 1) % npes);
    shmem_quiet();
}

static void barrier(void) {
    shmem_barrier_all();
}

/* The others wait in it for the last PE. */
static void wait_barrier(void) {
    if (me == npes - 1)
        pause();
    shmem_barrier_all();
}

static void allocate(void) {
    shmem_free(shmem_malloc(100));
}

static void reduce(void) {
    shmem_long_sum_reduce(SHMEM_TEAM_WORLD, many, source, NELEMS);
}

/* exit() finalizes, and the others wait in vain. */
static void leave(void) {
    if (me == npes - 1) {
        usleep(300000);
        exit(3);
    }
    shmem_barrier_all();
}

/* The last PE waits for a signal that does not come, and the others for it. */
static void wait_signal(void) {
    static uint64_t word;
    if (me == npes - 1)
        shmem_signal_wait_until(&word, SHMEM_CMP_EQ, 1);
    shmem_barrier_all();
}

static const struct kind {
    const char *name;
    void (*run)(void);
} kinds[] = {{"put", put},           {"barrier", barrier},   {"wait", wait_barrier},
             {"malloc", allocate},   {"collective", reduce}, {"exit", leave},
             {"signal", wait_signal}};

static void tell(const char *pe) {
    printf("pid %s %d\n", pe, (int)getpid());
    fflush(stdout);
}

int main(int argc, char **argv) {
    const char *kind = argc > 1 ? argv[1] : "", *pe = getenv("WEFT_PE"), *all = getenv("WEFT_NPES");
    if (strcmp(kind, "init") == 0) {
        tell(pe);
        if (pe && all && atoi(pe) == atoi(all) - 1)
            pause();
    }
    shmem_init();
    me = shmem_my_pe();
    npes = shmem_n_pes();
    if (strcmp(kind, "init") != 0)
        tell(pe);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        while (strcmp(kinds[i].name, kind) == 0)
            kinds[i].run();
    if (me == npes - 1)
        pause();
    shmem_finalize();
    return 0;
}
