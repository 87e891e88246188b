/* SPDX-License-Identifier: BSD-3-Clause */
/* PEs that another launcher has started do for each other what oshrun does for its own: they notice
 * and report deaths, and no PE survives the job's end.
 *
 * A thread in every PE waits for the alive mutex of the next PE of the ring. When the kernel marks
 * it, the thread writes the abort word. Any PE that sees the word leaves; a PE that computes and
 * does not look is ended by its own guard after half a second. */
#ifndef WEFT_BOOT_GUARD_H
#define WEFT_BOOT_GUARD_H

/* Once per process, after the meeting. 0 or -errno, logged. */
int weft_guard_start(void);

#endif
