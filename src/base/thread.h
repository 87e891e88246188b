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

/* True if the process has no thread but these and its first one, which has ended. */
bool weft_thread_others_ended(void);

#endif
