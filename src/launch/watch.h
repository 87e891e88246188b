/* SPDX-License-Identifier: BSD-3-Clause */
/* A thread that waits for the alive mutex of one PE: the earliest notice of its death. */
#ifndef WEFT_LAUNCH_WATCH_H
#define WEFT_LAUNCH_WATCH_H

#include <pthread.h>
#include <stdbool.h>

struct weft_watch {
    int pe;
    int pipe; /* where the notice goes */
    pthread_mutex_t *alive;
    bool running; /* the owner sets it to false after the notice */
};

/* The last message of a watcher, written to its pipe. */
struct weft_notice {
    int pe;
    int result; /* of pthread_mutex_lock: EOWNERDEAD, or 0 when the PE let go */
};

/* Starts the watcher. It does nothing if the watcher runs already or if there are no threads left:
 * other signs of death remain. */
void weft_watch_start(struct weft_watch *watch);

#endif
