/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds and signals all descendants of this process. */
#ifndef WEFT_LAUNCH_DESCENDANTS_H
#define WEFT_LAUNCH_DESCENDANTS_H

#include <stdbool.h>
#include <sys/types.h>

/* Makes this process the parent of descendants whose own parent ends. */
void weft_descendants_adopt(void);

/* Sends a signal to all descendants. */
void weft_descendants_signal(int signal);

/* Returns whether a process still runs its program. It does not if the kernel is tearing it down;
 * the kernel marks such a process before it closes its descriptors. */
bool weft_descendants_runs(pid_t pid);

#endif
