/* SPDX-License-Identifier: BSD-3-Clause */
/* The robust mutex that a PE holds for life, and by whose marking its death is noticed first.
 *
 * The kernel marks it when the thread that took it ends. The first thread of a process mostly ends
 * with it; for others, and for a first one that leaves them behind, a thread of ours takes the
 * mutex and sleeps. */
#ifndef WEFT_BOOT_ALIVE_H
#define WEFT_BOOT_ALIVE_H

#include <pthread.h>
#include <stdbool.h>
#include <time.h>

/* Makes one, in memory that is shared. */
void weft_alive_init(pthread_mutex_t *alive);

/* True if it is a robust mutex still. Every PE can write to it, and the C library ends a process
 * that hands it anything else. */
bool weft_alive_whole(const pthread_mutex_t *alive);

/* Lock the mutex of another PE, to learn of its death. They return what pthread_mutex_trylock,
 * _lock and (until a weft_deadline_ms) _timedlock return, or EINVAL if there is no such mutex any
 * more. After 0 and EOWNERDEAD the caller lets it go. */
int weft_alive_try(pthread_mutex_t *alive);

int weft_alive_await(pthread_mutex_t *alive, const struct timespec *until);
void weft_alive_let_go(pthread_mutex_t *alive, int found);

/* Whether a process that lives holds the mutex now. */
bool weft_alive_is_held(pthread_mutex_t *alive);

/* Takes the mutex for this process; nothing when it holds it still. 0 or -errno, not logged;
 * -ETIMEDOUT: another process holds it. */
int weft_alive_hold(pthread_mutex_t *alive);

/* Lets it go. When the thread that took it can't be made to, or something has written over it, it
 * stays held until the process ends: whoever notices must look at the PE's state. */
void weft_alive_release(pthread_mutex_t *alive);

/* Ends the process if the first thread and all others of the program have ended. The library's own
 * threads call this, because without them the program's last thread would have ended it. */
void weft_alive_end_if_last(void);

#endif
