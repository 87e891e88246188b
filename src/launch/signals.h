/* SPDX-License-Identifier: BSD-3-Clause */
/* Signals that reach the launcher are meant for the job. */
#ifndef WEFT_LAUNCH_SIGNALS_H
#define WEFT_LAUNCH_SIGNALS_H

#include "launch/run.h"

/* Takes in what has come: passes it on, or reaps children. */
void weft_signals_serve(struct weft_run *run);

#endif
