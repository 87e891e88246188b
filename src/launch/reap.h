/* SPDX-License-Identifier: BSD-3-Clause */
/* Follows the ends and messages of PEs, and decides whether the job continues. */
#ifndef WEFT_LAUNCH_REAP_H
#define WEFT_LAUNCH_REAP_H

#include "launch/run.h"

/* Reads one message from a PE. Returns whether there was one. */
bool weft_reap_serve(struct weft_run *run, int pe);

/* Handles the notice of a watcher, which has got the PE's mutex: the PE has released it, or died.
 */
void weft_reap_noticed(struct weft_run *run, const struct weft_notice *notice);

/* Judges again the PEs of this host that ended without joining; call it after a PE has joined,
 * which will wait for them in vain. */
void weft_reap_judge_absent(struct weft_run *run);

/* weft_reap_judge_lost checks again the PEs that seem to be alive although their sockets have
 * closed. weft_reap_patience returns the milliseconds until the next check, or -1 if there are no
 * such PEs. */
void weft_reap_judge_lost(struct weft_run *run);
int weft_reap_patience(const struct weft_run *run);

/* Collects every child that has ended. */
void weft_reap_children(struct weft_run *run);

/* Returns whether all PEs of this host have ended. */
bool weft_reap_all_over(const struct weft_run *run);

#endif
