/* SPDX-License-Identifier: BSD-3-Clause */
/* A thread that waits for the alive mutex of one PE: the earliest notice of its death. */
#ifndef WEFT_LAUNCH_WATCH_H
#define WEFT_LAUNCH_WATCH_H

#include <pthread.h>
#include <stdbool.h>

struct weft_watch {
    int pe;
    int pipe; /* for the notice */
    pthread_mutex_t *alive;
    bool running; /* the owner sets it to false after the notice */
};

/* The only message of a watcher. */
struct weft_notice {
    int pe;
    int result; /* EOWNERDEAD; 0: the PE released the mutex; EINVAL: it was overwritten */
};

/* Starts the watcher. Does nothing if it already runs or if no thread can be created: other signs
 * of death remain. */
void weft_watch_start(struct weft_watch *watch);

#endif
