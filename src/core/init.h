/* SPDX-License-Identifier: BSD-3-Clause */
/* Starts and ends the library. Calls nest, and the library may be started again after its end. */
#ifndef WEFT_CORE_INIT_H
#define WEFT_CORE_INIT_H

#include <stdbool.h>

/* Returns 0, or -errno after logging the reason. `provided` (may be NULL) receives the thread
 * level. */
int weft_init(int requested, int *provided);
void weft_finalize(void);

/* Marks a child that was created without pthread_atfork's handlers as a forked child. */
void weft_init_notice_fork(void);

bool weft_initialized(void);
int weft_thread_level(void);

/* Returns whether the thread level lets the calling thread use the library. */
bool weft_thread_allowed(void);

#endif
