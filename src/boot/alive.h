/* SPDX-License-Identifier: BSD-3-Clause */
/* The robust mutex that a PE holds for life, and by whose marking its death is noticed first.
 *
 * The kernel marks it when the thread that took it ends. The first thread of a process mostly ends
 * with it; for others, and for a first one that leaves them behind, a thread of ours takes the
 * mutex and sleeps. */
#ifndef WEFT_BOOT_ALIVE_H
#define WEFT_BOOT_ALIVE_H

#include <pthread.h>

/* Takes the mutex for this process; nothing when it holds it still. 0 or -errno, not logged;
 * -ETIMEDOUT: another process holds it. */
int weft_alive_hold(pthread_mutex_t *alive);

/* Lets it go. When the thread that took it can't be made to, it stays held until the process ends:
 * whoever notices must look at the PE's state. */
void weft_alive_release(pthread_mutex_t *alive);

/* For threads of ours: ends the process if the first thread has ended and so have all others of the
 * program. The last of them would have done it, had we not been there. */
void weft_alive_end_if_last(void);

#endif
