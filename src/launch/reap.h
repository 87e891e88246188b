/* SPDX-License-Identifier: BSD-3-Clause */
/* Follows the ends and messages of PEs, and decides whether the job can go on. */
#ifndef WEFT_LAUNCH_REAP_H
#define WEFT_LAUNCH_REAP_H

#include "launch/run.h"

/* Reads one message of the PE, if there is one; whether there was. */
bool weft_reap_serve(struct weft_run *run, int pe);

/* A watcher has its mutex: the PE let go of it, or died. */
void weft_reap_noticed(struct weft_run *run, const struct weft_notice *notice);

/* Somebody has joined: PEs of this host that have ended without will be waited for in vain. */
void weft_reap_judge_absent(struct weft_run *run);

/* Looks again at PEs that seem to live though their lines to us are closed; in how many
 * milliseconds the next look is due, -1: there are none. */
void weft_reap_judge_lost(struct weft_run *run);
int weft_reap_patience(const struct weft_run *run);

/* Takes in every child that is over. */
void weft_reap_children(struct weft_run *run);

/* True if every PE has ended. */
bool weft_reap_all_over(const struct weft_run *run);

#endif
