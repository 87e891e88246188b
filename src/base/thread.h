/* SPDX-License-Identifier: BSD-3-Clause */
/* The library's own threads, which receive none of the program's signals. */
#ifndef WEFT_BASE_THREAD_H
#define WEFT_BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>

/* Starts a thread with all signals blocked. Returns 0 or -errno, without logging. */
int weft_thread_start(pthread_t *thread, void *(*body)(void *), void *argument);
void weft_thread_join(pthread_t thread);

/* Corrects the number of threads of the library by `change`, for threads that an opened library
 * starts or ends itself with all signals blocked. */
void weft_thread_count(int change);

/* Makes the kernel schedule the calling thread in short time slices from now on. On a processor
 * that other threads want, the thread then runs soon after it wakes, instead of after their slices.
 * Its share of the processor stays the same. Children and threads that it starts later inherit
 * this. Has no effect before Linux 6.12 or if the thread's policy is not SCHED_OTHER. */
void weft_thread_shorten_slices(void);

/* Returns true if all threads except the library's own and the process's first have ended; the
 * first may run or have ended. */
bool weft_thread_others_ended(void);

#endif
