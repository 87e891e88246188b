/* SPDX-License-Identifier: BSD-3-Clause */
/* The mask is inherited, so it is set around the creation. */
#include "base/thread.h"
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/stat.h>

static _Atomic unsigned running;

int weft_thread_start(pthread_t *thread, void *(*body)(void *), void *argument) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int result = pthread_create(thread, NULL, body, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (result == 0)
        running++;
    return -result;
}

void weft_thread_join(pthread_t thread) {
    pthread_join(thread, NULL);
    running--;
}

/* A first thread that has ended is listed until the process does; a folder has two links more than
 * it lists folders. */
bool weft_thread_others_ended(void) {
    struct stat tasks;
    return stat("/proc/self/task", &tasks) == 0 && tasks.st_nlink <= 2 + 1 + running;
}
