/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads of the library's own, to which no signal of the program's is ever delivered. */
#ifndef WEFT_BASE_THREAD_H
#define WEFT_BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>

/* 0 or -errno, not logged. */
int weft_thread_start(pthread_t *thread, void *(*body)(void *), void *argument);
void weft_thread_join(pthread_t thread);

/* A library that is open has so many more threads of its own than before, which take no signals
 * either; or fewer. */
void weft_thread_count(int change);

/* Makes the kernel schedule the calling thread in short time slices from now on. On a processor
 * that other threads want, the thread then runs soon after it wakes, instead of after their slices.
 * Its share of the processor stays the same. Children and threads that it starts later inherit
 * this. Has no effect before Linux 6.12 and on a thread whose policy is not SCHED_OTHER. */
void weft_thread_shorten_slices(void);

/* True if the process has no thread but these and its first one, which has ended. */
bool weft_thread_others_ended(void);

#endif
