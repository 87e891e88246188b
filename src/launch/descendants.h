/* SPDX-License-Identifier: BSD-3-Clause */
/* Every process below this one, however deep. */
#ifndef WEFT_LAUNCH_DESCENDANTS_H
#define WEFT_LAUNCH_DESCENDANTS_H

#include <stdbool.h>
#include <sys/types.h>

/* Has orphans below this process become its own children. */
void weft_descendants_adopt(void);

/* Sends a signal to all descendants. */
void weft_descendants_signal(int signal);

/* True if a process still runs its program, rather than being taken down. The kernel marks one as
 * taken down before it closes its descriptors. */
bool weft_descendants_runs(pid_t pid);

#endif
