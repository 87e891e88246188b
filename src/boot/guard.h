/* SPDX-License-Identifier: BSD-3-Clause */
/* The guards of PEs that another launcher has started: they detect and report deaths, as oshrun
 * does for its own PEs, and end every PE when the job has ended.
 *
 * A thread in every PE waits for the alive mutex of the next PE in a ring. When the kernel marks
 * it, the thread writes the abort word. A PE that sees the word exits; a PE that computes and does
 * not look is ended by its own guard after half a second.
 *
 * Under oshrun, the launcher detects and reports deaths. But it may be stopped, or get no
 * processor. So waiting PEs check each other's mutexes from time to time. A PE that finds a death
 * writes the abort word itself, if the launcher has not done so within half a second. */
#ifndef WEFT_BOOT_GUARD_H
#define WEFT_BOOT_GUARD_H

/* Starts the guard, once per process, after PEs have met. Returns 0, or -errno after logging the
 * reason. */
int weft_guard_start(void);

/* Called in every iteration of a wait before it sleeps. Usually it only reads the clock; in a job
 * without oshrun, which has guards, it does nothing. May sleep for half a second. */
void weft_guard_look(void);

#endif
