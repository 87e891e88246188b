/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: begins and ends in the way that its first argument names, for tests/api/life.t.
 * Not a test by itself. PEs: none */
#include <shmem.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <shmemx.h>

static int me, npes;
static long never, lock, pid_of_holder;
static const char *farewell = "";

static void say_farewell(void) {
    usleep(100000); /* long enough for any other end of the process to come first */
    printf("%s", farewell);
}

static void finalize_handler(void) {
    shmem_finalize();
    printf("finalized ");
}

static void barrier_handler(void) {
    shmem_barrier_all();
}

static void forever(void) {
    for (volatile int spin = 0;; spin++)
        ;
}

/* PE 1's status is 42; what the others do meanwhile is `wait`'s. */
static int exit_while(void (*wait)(void)) {
    farewell = "farewell ";
    atexit(say_farewell);
    printf("from %d ", me);
    if (me == 1) {
        usleep(30000);
        shmem_global_exit(42);
    }
    wait();
    return 0;
}

static void in_malloc(void) {
    shmem_malloc(1000);
}

static void in_wait(void) {
    shmem_long_wait_until(&never, SHMEM_CMP_EQ, 1);
}

static void in_set_lock(void) {
    if (me == 0)
        shmem_set_lock(&lock); /* and keeps it */
    if (me == 0)
        in_wait();
    shmem_set_lock(&lock);
}

static void in_split(void) {
    shmem_team_t team;
    shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, npes, NULL, 0, &team);
}

static void in_second_finalize(void) {
    shmem_init();
    shmem_finalize();
}

/* Every PE leaves a first job and enters a second; PE 1 ends it as soon as it is in. */
static int exit_in_init(void) {
    shmem_finalize();
    shmem_init();
    if (me == 1)
        shmem_global_exit(42);
    shmem_finalize();
    return 0;
}

static void *global_exit_thread(void *status) {
    usleep(20000);
    shmem_global_exit((int)(intptr_t)status);
}

/* A thread of PE 1 ends the job while the PE's first thread is in a call itself. */
static int exit_from_thread(void (*wait)(void)) {
    pthread_t thread;
    farewell = "farewell ";
    atexit(say_farewell);
    if (me == 1)
        pthread_create(&thread, NULL, global_exit_thread, (void *)(intptr_t)42);
    if (me == 1 || wait != shmem_finalize)
        wait();
    forever();
    return 0;
}

/* Two threads of each PE end the job at once, each with another status from 10 on. */
static int exit_from_all(void) {
    pthread_t thread[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&thread[i], NULL, global_exit_thread, (void *)(intptr_t)(10 + 2 * me + i));
    for (int i = 0; i < 2; i++)
        pthread_join(thread[i], NULL);
    return 0;
}

/* The exit handlers of PE 1 use the library, though the job is over. */
static int exit_and_handler(void (*handler)(void)) {
    atexit(handler);
    if (me == 1)
        shmem_global_exit(42);
    in_wait();
    return 0;
}

static void *exit_thread(void *unused) {
    usleep(20000);
    exit(unused ? 1 : 0);
}

static int exit_by_thread(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, exit_thread, NULL);
    pause();
    return 1;
}

/* A second thread finalizes while the first returns from main. */
static void *finalize_thread(void *unused) {
    shmem_finalize();
    return unused;
}

static int finalize_twice(void) {
    pthread_t thread;
    if (me == 0)
        usleep(50000);
    pthread_create(&thread, NULL, finalize_thread, NULL);
    usleep(10000);
    return 0;
}

/* PE 1 is killed while it holds the lock and others queue for it. */
static int killed_holder(void) {
    if (me == 1) {
        shmem_set_lock(&lock);
        for (int pe = 0; pe < npes; pe++)
            shmem_long_p(&pid_of_holder, getpid(), pe);
        usleep(50000);
        raise(SIGKILL);
    }
    shmem_long_wait_until(&pid_of_holder, SHMEM_CMP_NE, 0);
    if (me == 0)
        while (shmem_test_lock(&lock) != 0)
            ;
    shmem_set_lock(&lock);
    return 0;
}

/* A PE departs while it holds a lock for which the others wait. */
static int departed_holder(int holder, bool testing) {
    if (me == holder)
        shmem_set_lock(&lock);
    shmem_barrier_all();
    if (me == holder)
        return 0;
    while (testing && shmem_test_lock(&lock) != 0)
        ;
    shmem_set_lock(&lock);
    return 0;
}

static void *pass_on(void *unused) {
    static long passed;
    for (long turn = 1; turn <= 30; turn++) {
        shmem_long_p(&passed, turn, (me + 1) % npes);
        shmem_barrier_all();
        if (passed < turn) /* the PE before this one may be a turn ahead */
            _exit(3);
        usleep(10000);
    }
    return unused;
}

/* The first thread ends; the process continues, and ends properly with its last thread. */
static int first_thread_ends(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, pass_on, NULL);
    pthread_exit(NULL);
}

/* Two jobs, the second without a finalize of its own. */
static int again(void) {
    for (int job = 0; job < 3; job++) {
        long *word = shmem_calloc(1, sizeof *word);
        shmem_long_p(word, me + job, (me + 1) % npes);
        shmem_barrier_all();
        if (*word != (me + npes - 1) % npes + job)
            return 1;
        shmem_finalize();
        shmem_init();
    }
    return 0;
}

static _Thread_local jmp_buf *way_out;

static void leave_call(const char *reason) {
    printf("told PE %d: %s\n", me, reason);
    if (way_out)
        longjmp(*way_out, 1);
}

static void *wait_in_thread(void *wait) {
    jmp_buf lost;
    way_out = &lost;
    if (setjmp(lost) == 0)
        ((void (*)(void))(uintptr_t)wait)();
    way_out = NULL;
    return NULL;
}

/* PE 1 is killed while two threads of each other PE wait: both waits return, and so does a later
 * call. */
static int killed_with_handler(void (*wait)(void)) {
    pthread_t thread;
    shmemx_set_end_handler(leave_call);
    shmem_barrier_all();
    if (me == 1) {
        usleep(30000);
        raise(SIGKILL);
    }
    pthread_create(&thread, NULL, wait_in_thread, (void *)(uintptr_t)in_wait);
    wait_in_thread((void *)(uintptr_t)wait);
    pthread_join(thread, NULL);
    wait_in_thread((void *)(uintptr_t)in_wait);
    printf("cleared up\n");
    return 0;
}

static int started(const char *how) {
    static const struct {
        const char *how;
        void (*wait)(void);
    } waits[] = {{"compute", forever},
                 {"barrier", shmem_barrier_all},
                 {"finalize", shmem_finalize},
                 {"malloc", in_malloc},
                 {"wait", in_wait},
                 {"lock", in_set_lock},
                 {"split", in_split},
                 {"nested", in_second_finalize}};
    for (size_t i = 0; i < sizeof waits / sizeof *waits; i++) {
        if (strcmp(how, waits[i].how) == 0)
            return exit_while(waits[i].wait);
        if (strncmp(how, "thread-", 7) == 0 && strcmp(how + 7, waits[i].how) == 0)
            return exit_from_thread(waits[i].wait);
        if (strncmp(how, "handler-", 8) == 0 && strcmp(how + 8, waits[i].how) == 0)
            return killed_with_handler(waits[i].wait);
    }
    if (strcmp(how, "in-init") == 0)
        return exit_in_init();
    if (strcmp(how, "all") == 0)
        return exit_from_all();
    if (strcmp(how, "finalize-handler") == 0)
        return exit_and_handler(finalize_handler);
    if (strcmp(how, "barrier-handler") == 0)
        return exit_and_handler(barrier_handler);
    if (strcmp(how, "exit-by-thread") == 0)
        return exit_by_thread();
    if (strcmp(how, "finalize-twice") == 0)
        return finalize_twice();
    if (strcmp(how, "killed-holder") == 0)
        return killed_holder();
    if (strncmp(how, "departed-holder-", 16) == 0)
        return departed_holder(how[16] - '0', how[17] == 't');
    if (strcmp(how, "first-thread-ends") == 0)
        return first_thread_ends();
    if (strcmp(how, "again") == 0)
        return again();
    return strcmp(how, "return") == 0 ? 0 : 2;
}

/* Initialises in the way that the second argument names. */
static int start(const char *how) {
    int provided = -1, initialized = -1;
    shmem_query_initialized(&initialized);
    if (initialized != 0)
        return 1;
    if (strcmp(how, "start_pes") == 0) {
        start_pes(0);
        start_pes(5);
    } else if (strcmp(how, "nested") == 0) {
        shmem_init();
        shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided);
        start_pes(0);
        if (provided != SHMEM_THREAD_MULTIPLE)
            return 1;
    } else if (shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided) != 0) {
        return 5;
    }
    shmem_query_initialized(&initialized);
    return initialized != 1;
}

int main(int argc, char **argv) {
    int failed = start(argc > 2 ? argv[2] : "");
    if (failed)
        return failed;
    me = shmem_my_pe();
    npes = shmem_n_pes();
    return started(argc > 1 ? argv[1] : "");
}
