/* SPDX-License-Identifier: BSD-3-Clause */
/* The robust mutex that a PE holds while it has joined. The kernel marks it when the thread that
 * holds it ends, which is the first notice of the PE's death.
 *
 * The first thread of a process usually ends with the process. If another thread joins, or the
 * first thread ends before the others, a thread of the library holds the mutex and sleeps. */
#ifndef WEFT_BOOT_ALIVE_H
#define WEFT_BOOT_ALIVE_H

#include <pthread.h>
#include <stdbool.h>
#include <time.h>

/* Initialises a mutex in shared memory. */
void weft_alive_init(pthread_mutex_t *alive);

/* Lock the mutex of another PE to find out whether it has died. They return the result of
 * pthread_mutex_trylock, _lock, and, with a time from weft_deadline_ms, _timedlock; or EINVAL if
 * the mutex was overwritten. After 0 and EOWNERDEAD the caller calls weft_alive_let_go. */
int weft_alive_try(pthread_mutex_t *alive);

int weft_alive_await(pthread_mutex_t *alive, const struct timespec *until);
void weft_alive_let_go(pthread_mutex_t *alive, int found);

/* Returns whether a living process holds the mutex. */
bool weft_alive_is_held(pthread_mutex_t *alive);

/* Locks the mutex for this process, unless the process already holds it. Returns 0 or -errno,
 * without logging; -ETIMEDOUT: another process holds it. */
int weft_alive_hold(pthread_mutex_t *alive);

/* Unlocks the mutex. If it was overwritten, or the thread that locked it cannot be reached, it
 * stays locked until the process ends. Therefore the notice of a death also checks the PE's state.
 */
void weft_alive_release(pthread_mutex_t *alive);

/* Ends the process if the first thread and all others of the program have ended. The library's own
 * threads call this, because without them the program's last thread would have ended it. */
void weft_alive_end_if_last(void);

#endif
