/* SPDX-License-Identifier: BSD-3-Clause */
/* What happens to a PE, and whether the job can go on after it. */
#ifndef WEFT_LAUNCH_FATE_H
#define WEFT_LAUNCH_FATE_H

#include "launch/run.h"

/* Reads one message of the PE, if there is one; whether there was. */
bool weft_fate_serve(struct weft_run *run, int pe);

/* A watcher has its mutex: the PE let go of it, or died. */
void weft_fate_noticed(struct weft_run *run, const struct weft_notice *notice);

/* Takes in every child that is over. */
void weft_fate_reap(struct weft_run *run);

/* Whether every PE has ended. */
bool weft_fate_all_over(const struct weft_run *run);

#endif
