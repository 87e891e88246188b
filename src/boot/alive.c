/* SPDX-License-Identifier: BSD-3-Clause */
/* `holder` is the process that holds the mutex: with its keeper thread if that runs, otherwise with
 * its first thread. A forked child inherits these variables but not the mutex, hence the comparison
 * of process numbers. */
#include "boot/alive.h"
#include <errno.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/deadline.h"
#include "base/thread.h"

static pid_t holder;
static pthread_mutex_t as_taken; /* copy of the mutex after it was locked */
static _Atomic bool first_ended; /* the first thread has called pthread_exit */

static struct {
    bool running;
    pthread_t thread;
    pthread_mutex_t *alive;
    int error;
    sem_t taken, release;
} keeper;

void weft_alive_init(pthread_mutex_t *alive) {
    pthread_mutexattr_t robust;
    pthread_mutexattr_init(&robust);
    pthread_mutexattr_setpshared(&robust, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&robust, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(alive, &robust);
    pthread_mutexattr_destroy(&robust);
}

/* Returns whether this is still a robust mutex. Every PE can overwrite it, and the C library aborts
 * a process that passes anything else to its functions. */
static bool is_whole(const pthread_mutex_t *alive) {
    pthread_mutex_t fresh;
    weft_alive_init(&fresh);
    return alive->__data.__kind == fresh.__data.__kind;
}

int weft_alive_try(pthread_mutex_t *alive) {
    return is_whole(alive) ? pthread_mutex_trylock(alive) : EINVAL;
}

int weft_alive_await(pthread_mutex_t *alive, const struct timespec *until) {
    if (!is_whole(alive))
        return EINVAL;
    return until ? weft_deadline_lock(alive, until) : pthread_mutex_lock(alive);
}

void weft_alive_let_go(pthread_mutex_t *alive, int found) {
    if ((found != 0 && found != EOWNERDEAD) || !is_whole(alive))
        return;
    if (found == EOWNERDEAD)
        pthread_mutex_consistent(alive);
    pthread_mutex_unlock(alive);
}

bool weft_alive_is_held(pthread_mutex_t *alive) {
    int found = weft_alive_try(alive);
    weft_alive_let_go(alive, found);
    return found == EBUSY;
}

/* While this PE holds the mutex, other PEs only change its first word, to announce that they wait.
 * A robust mutex is an element of a list of its thread; unlocking a mutex that was overwritten
 * would follow invalid pointers. */
static bool alive_is_as_taken(const pthread_mutex_t *alive) {
    const unsigned char *now = (const unsigned char *)alive, *then = (const void *)&as_taken;
    return memcmp(now + sizeof(int), then + sizeof(int), sizeof *alive - sizeof(int)) == 0;
}

/* The launcher's watcher may hold the mutex for a moment after this PE has left. If it is not free
 * within a second, another process is this PE. */
static int alive_take(pthread_mutex_t *alive) {
    struct timespec until = weft_deadline_ms(1000);
    int result = is_whole(alive) ? weft_deadline_lock(alive, &until) : EINVAL;
    if (result == EOWNERDEAD)
        result = pthread_mutex_consistent(alive);
    if (result == 0)
        as_taken = *alive;
    return -result;
}

static void event_await(sem_t *event) {
    while (sem_wait(event) < 0 && errno == EINTR)
        ;
}

static void keeper_end_after_others(void) {
    enum { LOOK_MS = 10 };
    struct timespec until;
    do {
        weft_alive_end_if_last();
        until = weft_deadline_ms(LOOK_MS);
    } while (weft_deadline_take(&keeper.release, &until) < 0);
}

static void *keeper_main(void *unused) {
    (void)unused;
    keeper.error = alive_take(keeper.alive);
    sem_post(&keeper.taken);
    if (keeper.error != 0)
        return NULL;
    if (first_ended)
        keeper_end_after_others();
    else
        event_await(&keeper.release);
    if (alive_is_as_taken(keeper.alive))
        pthread_mutex_unlock(keeper.alive);
    return NULL;
}

static int keeper_start(pthread_mutex_t *alive) {
    sem_init(&keeper.taken, 0, 0);
    sem_init(&keeper.release, 0, 0);
    keeper.alive = alive;
    return weft_thread_start(&keeper.thread, keeper_main, NULL);
}

static int keeper_wait(void) {
    event_await(&keeper.taken);
    keeper.running = keeper.error == 0;
    if (!keeper.running)
        weft_thread_join(keeper.thread);
    return keeper.error;
}

static int keeper_take(pthread_mutex_t *alive) {
    int error = keeper_start(alive);
    return error ? error : keeper_wait();
}

/* The first thread ends by pthread_exit and other threads continue: the keeper waits for the mutex
 * before it is released. A watcher that gets it in between sees the state JOINED and continues to
 * watch. */
static void alive_hand_over(void *alive) {
    first_ended = true;
    if (holder != getpid() || keeper.running || keeper_start(alive) != 0)
        return;
    if (alive_is_as_taken(alive))
        pthread_mutex_unlock(alive);
    keeper_wait();
}

/* Destructors of thread-specific data run when the first thread calls pthread_exit, but not when
 * the process ends. */
static int alive_take_until_exit(pthread_mutex_t *alive) {
    static pthread_key_t end;
    static bool watched;
    int error = watched ? 0 : -pthread_key_create(&end, alive_hand_over);
    watched = error == 0;
    if (error == 0)
        error = alive_take(alive);
    return error ? error : -pthread_setspecific(end, alive);
}

int weft_alive_hold(pthread_mutex_t *alive) {
    pid_t self = getpid();
    if (holder == self)
        return 0;
    bool first_thread = syscall(SYS_gettid) == self;
    int error = first_thread ? alive_take_until_exit(alive) : keeper_take(alive);
    if (error == 0)
        holder = self;
    return error;
}

void weft_alive_end_if_last(void) {
    bool is_keeper = keeper.running && pthread_equal(keeper.thread, pthread_self());
    if (first_ended && (!keeper.running || is_keeper) && weft_thread_others_ended())
        exit(0);
}

void weft_alive_release(pthread_mutex_t *alive) {
    if (holder != getpid())
        return;
    if (keeper.running && !pthread_equal(keeper.thread, pthread_self())) {
        sem_post(&keeper.release);
        weft_thread_join(keeper.thread);
        keeper.running = false;
        holder = 0;
    } else if (alive_is_as_taken(alive) && pthread_mutex_unlock(alive) == 0) {
        holder = 0;
    }
}
