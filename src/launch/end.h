/* SPDX-License-Identifier: BSD-3-Clause */
/* Ends a job because of a cause: the PEs read it from the control page, then get SIGTERM, then
 * SIGKILL, all within two seconds. */
#ifndef WEFT_LAUNCH_END_H
#define WEFT_LAUNCH_END_H

#include "launch/run.h"

/* Begins the end of the job; only the first cause counts. */
void weft_end_begin(struct weft_run *run, struct weft_cause cause);

/* Completes the cause with the wait status of the culprit, whose process has ended. */
void weft_end_learn(struct weft_run *run);

/* Handles a deadly signal that the launcher and the PEs have received. The second such signal kills
 * the PEs. */
void weft_end_signaled(struct weft_run *run, int signal, bool from_terminal);

/* Enters the next phase of the end if it is due. */
void weft_end_advance(struct weft_run *run);

/* Returns the milliseconds until the next phase is due, for poll; -1: no phase is due. */
int weft_end_patience(const struct weft_run *run);

/* Names the PE whose status becomes the job's, if all PEs exited in order but at least one not with
 * 0. */
void weft_end_tell_status(const struct weft_run *run);

/* Call it after the end of the job. If the job ended without a cause, prints a line if a PE's
 * process has ended before shmem_init and has left a process that continues, which is not a PE.
 * Prints a line if the PE of the cause (without a cause: PE 0, if no PE has joined) never called
 * Weft's shmem_init and its program calls that of another OpenSHMEM library: such a program runs
 * here as if each PE were alone. */
void weft_end_tell_other_library(const struct weft_run *run);

/* Returns the exit status of oshrun. */
int weft_end_status(const struct weft_run *run);

#endif
