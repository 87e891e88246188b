/* SPDX-License-Identifier: BSD-3-Clause */
/* Signals that reach the launcher are meant for the job. */
#ifndef WEFT_LAUNCH_SIGNALS_H
#define WEFT_LAUNCH_SIGNALS_H

#include "launch/run.h"

/* Has signals arrive at run->signals, and keeps what was set before. 0 or -errno. */
int weft_signals_open(struct weft_run *run);

/* Takes in what has come: passes it on, or reaps children. */
void weft_signals_serve(struct weft_run *run);

#endif
