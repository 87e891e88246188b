/* SPDX-License-Identifier: BSD-3-Clause */
/* PEs that another launcher has started do for each other what oshrun does for its own: they notice
 * and report deaths, and no PE survives the job's end.
 *
 * A thread in every PE waits for the alive mutex of the next PE of the ring. When the kernel marks
 * it, the thread writes the abort word. Any PE that sees the word leaves; a PE that computes and
 * does not look is ended by its own guard after half a second.
 *
 * Under oshrun a death is the launcher's to notice and to tell. A launcher may be stopped, or get
 * no processor: so PEs that wait look at each other's mutexes now and then, and whoever finds a
 * dead one writes the abort word itself when the launcher has not within half a second. */
#ifndef WEFT_BOOT_GUARD_H
#define WEFT_BOOT_GUARD_H

/* Once per process, after the meeting. 0 or -errno, logged. */
int weft_guard_start(void);

/* Called in every turn of a wait that is about to sleep. It is mostly one reading of the clock, and
 * nothing in a job without oshrun, whose guards do this. It may sleep for half a second. */
void weft_guard_look(void);

#endif
