/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: PEs that are in one kind of call until something happens to them.
 *
 *   phases KIND           below oshrun
 *   phases KIND PE NPES   by a unique id
 *
 * Each PE prints "pid PE PID" when it is in the call, or, for init, before it. If the last PE keeps
 * the others waiting, SIGUSR1 lets it continue, also if the signal arrives before it waits. For
 * deaths.t and hangs.t; not a test by itself. PEs: none */
#include "hosts/by_id.h"
#include <shmem.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weft.h>

enum { NELEMS = 20000, ROWS = 16, PES_MAX = 16 };

static long many[NELEMS], source[NELEMS];
static long lock;
static float shard[ROWS * ROWS], factor[ROWS * ROWS], product[PES_MAX * ROWS * ROWS];
static int me, npes;
static sigset_t go_on;

/* Blocks the signal, so that it stays pending until the PE waits for it. */
static void go_on_block(void) {
    sigemptyset(&go_on);
    sigaddset(&go_on, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &go_on, NULL);
}

static void go_on_await(void) {
    int number;
    sigwait(&go_on, &number);
}

/* Pauses the last PE; the others wait meanwhile. */
static void last_pauses(void) {
    if (me == npes - 1)
        go_on_await();
}

static void put(void) {
    for (int pe = 0; pe < npes; pe++)
        if (pe != me)
            shmem_long_put(many, source, NELEMS, pe);
    shmem_quiet();
}

static void barrier(void) {
    shmem_barrier_all();
}

static void wait_barrier(void) {
    last_pauses();
    shmem_barrier_all();
}

/* The last PE makes no call after its put. */
static void compute(void) {
    last_pauses();
    if (me != npes - 1)
        shmem_barrier_all();
    shmem_long_put_nbi(many, source, NELEMS, 0);
    for (volatile int i = 0;; i++)
        continue;
}

static void take_lock(void) {
    shmem_set_lock(&lock);
    shmem_clear_lock(&lock);
}

static void multiply(void) {
    weft_matrix a = {shard, ROWS, ROWS, ROWS, WEFT_F32, false},
                b = {factor, ROWS, ROWS, ROWS, WEFT_F32, false},
                c = {product, (size_t)npes * ROWS, ROWS, ROWS, WEFT_F32, false};
    if (weft_all_gather_matmul(SHMEM_TEAM_WORLD, &a, &b, 1, &c, NULL, WEFT_STREAM_HOST) != 0) {
        fprintf(stderr, "phases: %s\n", weft_last_error());
        exit(1);
    }
}

static void allocate(void) {
    shmem_free(shmem_malloc(100));
}

static void reduce(void) {
    shmem_long_sum_reduce(SHMEM_TEAM_WORLD, many, source, NELEMS);
}

/* The last PE exits with a status, PE 0 computes, and the others wait. */
static void leave(void) {
    if (me == npes - 1) {
        usleep(300000);
        exit(3);
    }
    for (volatile int turns = 0; me == 0; turns++)
        continue;
    shmem_barrier_all();
}

/* The last PE waits for a signal that never arrives, and the others wait for it. */
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
             {"compute", compute},   {"lock", take_lock},    {"malloc", allocate},
             {"operator", multiply}, {"collective", reduce}, {"exit", leave},
             {"signal", wait_signal}};

static void tell(void) {
    printf("pid %d %d\n", me, (int)getpid());
    fflush(stdout);
}

int main(int argc, char **argv) {
    const char *kind = argc > 1 ? argv[1] : "";
    bool by_id = argc > 3, early = strcmp(kind, "init") == 0;
    const char *pe = by_id ? argv[2] : getenv("WEFT_PE"),
               *all = by_id ? argv[3] : getenv("WEFT_NPES");
    me = pe ? atoi(pe) : 0;
    npes = all ? atoi(all) : 1;
    go_on_block();
    if (early) {
        tell();
        last_pauses();
    }
    if (by_id)
        init_by_id(me, npes);
    else
        shmem_init();
    if (strcmp(kind, "operator") == 0)
        multiply(); /* the first product loads oneDNN, and meanwhile the PE notices nothing else */
    if (!early)
        tell();
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        while (strcmp(kinds[i].name, kind) == 0)
            kinds[i].run();
    last_pauses();
    shmem_finalize();
    return 0;
}
