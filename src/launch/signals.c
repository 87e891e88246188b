/* SPDX-License-Identifier: BSD-3-Clause */
/* A signal that the kernel sends on behalf of the terminal goes to our whole process group, in
 * which the PEs are, and is not sent to them again. */
#include "launch/signals.h"
#include <unistd.h>
#include "launch/catch.h"
#include "launch/end.h"
#include "launch/reap.h"

static void signal_forward(struct weft_run *run, int signal, bool group_has_it) {
    if (group_has_it)
        return;
    for (int pe = 0; pe < run->npes; pe++)
        weft_run_signal(run, pe, signal);
}

static void signal_serve(struct weft_run *run, int signal, bool group_has_it) {
    if (signal == SIGCHLD) {
        weft_reap_children(run);
        return;
    }
    signal_forward(run, signal, group_has_it);
    if (weft_catch_is_deadly(signal))
        weft_end_signaled(run, signal, group_has_it);
    else if (signal == SIGTSTP)
        kill(getpid(), SIGSTOP); /* as the shell expects of a job that was stopped */
}

void weft_signals_serve(struct weft_run *run) {
    int signal;
    bool from_kernel;
    while (weft_catch_next(run, &signal, &from_kernel))
        signal_serve(run, signal, from_kernel);
}
