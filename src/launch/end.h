/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of a job before its time: all PEs are told, then asked by SIGTERM, then killed, within
 * two seconds. */
#ifndef WEFT_LAUNCH_END_H
#define WEFT_LAUNCH_END_H

#include "launch/run.h"

/* Starts the end. Only the first cause counts. */
void weft_end_begin(struct weft_run *run, struct weft_cause cause);

/* The culprit's process is over: now it is known how. */
void weft_end_learn(struct weft_run *run);

/* A deadly signal has reached us, and the PEs too. A second one kills. */
void weft_end_signaled(struct weft_run *run, int signal, bool from_terminal);

/* The next step, when the time has come for it. */
void weft_end_advance(struct weft_run *run);

/* The milliseconds that poll may wait before the next step is due, -1 for ever. */
int weft_end_patience(const struct weft_run *run);

/* Names the PE whose status the job has, where all PEs ended in order and one not with 0. */
void weft_end_tell_status(const struct weft_run *run);

/* If all PEs are over and one of them has left a process behind that has not called shmem_init,
 * says that this process goes on alone. If a PE that matters has never called Weft's shmem_init,
 * and its program calls another one, says so: programs of another OpenSHMEM library run here as if
 * each PE were alone. */
void weft_end_tell_other_library(const struct weft_run *run);

/* The status that oshrun exits with. */
int weft_end_status(const struct weft_run *run);

#endif
