/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: all PEs repeat one operation on each other, and one PE dies of it if the engine's
 * settings say so.
 *
 *   scenes SCENE TURNS
 *
 * SCENE is a name in the table below. Each PE prints "pid PE PID" first. Exits with 0 if no PE
 * dies. Used by deaths.t; not a test itself. PEs: none */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>
#include "draw.h"

enum { NELEMS = 20000 };

static long word, many[NELEMS], source[NELEMS], lock;
static uint64_t signal_word;
static int me, npes, to, turn;

static void put(void) {
    shmem_long_put(many, source, NELEMS, to);
}

/* Puts without waiting: the target, which does the same, falls behind. */
static void flood(void) {
    for (int i = 0; i < 300; i++)
        shmem_long_put_nbi(many, source, 1000, to);
}

static void get(void) {
    shmem_long_get(many, source, NELEMS, to);
}

static void fetch_add(void) {
    shmem_long_atomic_fetch_add(&word, 1, to);
}

static void quiet(void) {
    for (int pe = 0; pe < npes; pe++)
        shmem_long_put_nbi(many, source, 1000, pe);
    shmem_quiet();
}

static void fence(void) {
    shmem_long_p(&word, turn, to);
    shmem_fence();
}

static void put_signal(void) {
    shmem_long_put_signal(many, source, 1000, &signal_word, (uint64_t)turn, SHMEM_SIGNAL_SET, to);
    shmem_signal_wait_until(&signal_word, SHMEM_CMP_GE, (uint64_t)turn);
}

static void barrier(void) {
    shmem_barrier_all();
}

static void locks(void) {
    shmem_set_lock(&lock);
    shmem_clear_lock(&lock);
}

static void allocate(void) {
    shmem_free(shmem_malloc(100));
}

static void reduce(void) {
    shmem_long_sum_reduce(SHMEM_TEAM_WORLD, many, source, (size_t)(turn % 2 ? 1 : NELEMS));
}

/* The root is ahead of the others as far as permitted. */
static void broadcast(void) {
    shmem_long_broadcast(SHMEM_TEAM_WORLD, many, source, (size_t)(turn % 2 ? 1 : NELEMS), 0);
}

static void teams(void) {
    shmem_team_t team;
    shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, npes, NULL, 0, &team);
    shmem_team_sync(team);
    shmem_team_destroy(team);
}

/* The PE computes while it is served. */
static void idle(void) {
    if (me == 0)
        shmem_long_atomic_fetch_add(&word, 1, npes - 1);
    else
        usleep(1000);
}

static void put_to_peer(int number) {
    (void)number;
    shmem_long_p(&word, turn, to);
}

static void wait_for_peer(int number) {
    (void)number;
    shmem_long_wait_until(&word, SHMEM_CMP_GT, shmem_long_g(&word, me));
}

/* Signals interrupt PE 0 at all moments, also while it is in a call. */
static void interrupted(void (*handler)(int)) {
    struct itimerval often = {{0, 50}, {0, 50}};
    if (me == 0 && turn == 1) {
        sigaction(SIGALRM, &(struct sigaction){.sa_handler = handler, .sa_flags = SA_RESTART},
                  NULL);
        setitimer(ITIMER_REAL, &often, NULL);
    }
    shmem_long_put(many, source, NELEMS, to);
    shmem_long_p(&word, turn, to);
}

static void handler_put(void) {
    interrupted(put_to_peer);
}

static void handler_wait(void) {
    interrupted(wait_for_peer);
}

static const struct scene {
    const char *name;
    void (*run)(void);
} scenes[] = {
    {"put", put},
    {"flood", flood},
    {"get", get},
    {"fetch_add", fetch_add},
    {"quiet", quiet},
    {"fence", fence},
    {"signal", put_signal},
    {"barrier", barrier},
    {"locks", locks},
    {"malloc", allocate},
    {"reduce", reduce},
    {"broadcast", broadcast},
    {"teams", teams},
    {"idle", idle},
    {"handler_put", handler_put},
    {"handler_wait", handler_wait},
};

int main(int argc, char **argv) {
    shmem_init();
    me = shmem_my_pe();
    npes = shmem_n_pes();
    to = (me + 1) % npes;
    printf("pid %d %d\n", me, (int)getpid());
    fflush(stdout);
    for (size_t i = 0; argc == 3 && i < sizeof scenes / sizeof *scenes; i++)
        if (strcmp(scenes[i].name, argv[1]) == 0)
            for (turn = 1; turn <= atoi(argv[2]); turn++)
                scenes[i].run();
    shmem_finalize();
    return 0;
}
