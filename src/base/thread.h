/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads of the library's own, to which no signal of the program's is ever delivered. */
#ifndef WEFT_BASE_THREAD_H
#define WEFT_BASE_THREAD_H

#include <pthread.h>

/* 0 or -errno, not logged. */
int weft_thread_start(pthread_t *thread, void *(*body)(void *), void *argument);

#endif
