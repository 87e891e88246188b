/* SPDX-License-Identifier: BSD-3-Clause */
/* Who holds: `holder` is the process, and the keeper thread if it runs, otherwise the first thread.
 * A forked child inherits these variables but not the mutex, so the process id decides. */
#include "boot/alive.h"
#include "base/clock.h"
#include "base/thread.h"
#include <errno.h>
#include <semaphore.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

static pid_t holder;

static struct {
    bool running;
    pthread_t thread;
    pthread_mutex_t *alive;
    int result;
    sem_t taken, release;
} keeper;

/* The launcher's watcher may hold the mutex for a moment after the last leaving; a second is ample
 * unless another process is this PE already. */
static int take(pthread_mutex_t *alive) {
    struct timespec until = weft_clock_deadline_ms(1000);
    int rc = pthread_mutex_timedlock(alive, &until);
    if (rc == EOWNERDEAD)
        rc = pthread_mutex_consistent(alive);
    return -rc;
}

static void wait_for(sem_t *event) {
    while (sem_wait(event) < 0 && errno == EINTR)
        ;
}

static void *keeper_main(void *unused) {
    (void)unused;
    keeper.result = take(keeper.alive);
    sem_post(&keeper.taken);
    if (keeper.result == 0) {
        wait_for(&keeper.release);
        pthread_mutex_unlock(keeper.alive);
    }
    return NULL;
}

static int keeper_start(pthread_mutex_t *alive) {
    sem_init(&keeper.taken, 0, 0);
    sem_init(&keeper.release, 0, 0);
    keeper.alive = alive;
    int rc = weft_thread_start(&keeper.thread, keeper_main, NULL);
    if (rc)
        return rc;
    wait_for(&keeper.taken);
    keeper.running = keeper.result == 0;
    if (!keeper.running)
        pthread_join(keeper.thread, NULL);
    return keeper.result;
}

int weft_alive_hold(pthread_mutex_t *alive) {
    pid_t self = getpid();
    if (holder == self)
        return 0;
    bool first_thread = syscall(SYS_gettid) == self;
    int rc = first_thread ? take(alive) : keeper_start(alive);
    if (rc == 0)
        holder = self;
    return rc;
}

void weft_alive_release(pthread_mutex_t *alive) {
    if (holder != getpid())
        return;
    if (keeper.running) {
        sem_post(&keeper.release);
        pthread_join(keeper.thread, NULL);
        keeper.running = false;
        holder = 0;
    } else if (pthread_mutex_unlock(alive) == 0) {
        holder = 0;
    }
}
