/* SPDX-License-Identifier: BSD-3-Clause */
/* Bringing the floors up in order, and down again. Nests, and may start again after the end. */
#ifndef WEFT_CORE_INIT_H
#define WEFT_CORE_INIT_H

#include <stdbool.h>

/* 0 or -errno, logged. `provided` (may be NULL) receives the thread level. */
int weft_init(int requested, int *provided);
void weft_finalize(void);

/* Makes a child that was made without the handlers of pthread_atfork know that it is no PE. */
void weft_init_notice_fork(void);

bool weft_initialized(void);
int weft_thread_level(void);

/* Whether the thread level lets the calling thread use the library. */
bool weft_thread_allowed(void);

#endif
