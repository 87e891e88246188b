/* SPDX-License-Identifier: BSD-3-Clause */
/* The mask is inherited, so it is set around the creation. */
#include "base/thread.h"
#include <signal.h>
#include <stddef.h>

int weft_thread_start(pthread_t *thread, void *(*body)(void *), void *argument) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(thread, NULL, body, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return -rc;
}
