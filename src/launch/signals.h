/* SPDX-License-Identifier: BSD-3-Clause */
/* Receives the launcher's signals through a descriptor. */
#ifndef WEFT_LAUNCH_SIGNALS_H
#define WEFT_LAUNCH_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

struct weft_signals {
    int signals; /* signalfd */

    /* State at the start. */
    sigset_t mask;
    struct sigaction sigchld;
};

/* Opens signals->signals and saves the previous state. Returns 0, or -errno after logging the
 * reason. */
int weft_signals_open(struct weft_signals *signals);

/* Restores the saved mask and handlers: in a child that becomes the program, and before the
 * launcher's own end. */
void weft_signals_restore(const struct weft_signals *signals);

/* Reads the next pending signal; returns false if there is none. */
bool weft_signals_next(const struct weft_signals *signals, int *signal, bool *from_kernel);

bool weft_signal_is_deadly(int signal);

/* Returns whether the launcher forwards this signal to PEs. */
bool weft_signal_is_forwarded(int signal);

#endif
