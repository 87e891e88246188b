/* SPDX-License-Identifier: BSD-3-Clause */
/* The signals that the launcher takes, as something to read. */
#ifndef WEFT_LAUNCH_SIGNALS_H
#define WEFT_LAUNCH_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

struct weft_signals {
    int signals; /* signalfd: where they arrive */

    /* As they were found. */
    sigset_t mask;
    struct sigaction sigchld;
};

/* Has signals arrive at signals->signals, and keeps what was set before. 0 or -errno. */
int weft_signals_open(struct weft_signals *signals);

/* Restores mask and handlers as they were found: for a child that becomes the program, and for the
 * launcher's own end. */
void weft_signals_restore(const struct weft_signals *signals);

/* The next signal that has come; false: there is none. */
bool weft_signals_next(const struct weft_signals *signals, int *signal, bool *from_kernel);

bool weft_signal_is_deadly(int signal);

/* Whether it is one that the launcher passes on to PEs. */
bool weft_signal_is_forwarded(int signal);

#endif
