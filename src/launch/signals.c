/* SPDX-License-Identifier: BSD-3-Clause */
/* No handler is installed and no disposition changed but SIGCHLD's: signals are blocked and read.
 * A signal that the kernel sends on behalf of the terminal goes to our whole process group, in
 * which the PEs are, and is not sent to them again. What was ignored when we started stays ignored,
 * as nohup and shells in the background expect. */
#include "launch/signals.h"
#include "launch/end.h"
#include "launch/fate.h"
#include <errno.h>
#include <stddef.h>
#include <sys/signalfd.h>
#include <unistd.h>

static const int deadly[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
static const int harmless[] = {SIGUSR1, SIGUSR2, SIGCONT, SIGTSTP};

static bool is_deadly(int signal) {
    for (size_t i = 0; i < sizeof deadly / sizeof *deadly; i++)
        if (deadly[i] == signal)
            return true;
    return false;
}

static void add_unless_ignored(sigset_t *set, const int *signals, size_t count) {
    for (size_t i = 0; i < count; i++) {
        struct sigaction found;
        sigaction(signals[i], NULL, &found);
        if (found.sa_handler != SIG_IGN)
            sigaddset(set, signals[i]);
    }
}

int weft_signals_open(struct weft_run *run) {
    sigset_t ours;
    sigemptyset(&ours);
    add_unless_ignored(&ours, deadly, sizeof deadly / sizeof *deadly);
    add_unless_ignored(&ours, harmless, sizeof harmless / sizeof *harmless);
    sigaddset(&ours, SIGCHLD);
    struct sigaction standard = {.sa_handler = SIG_DFL}; /* ignored, children would not be kept */
    sigaction(SIGCHLD, &standard, &run->sigchld);
    run->signals = signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK);
    sigaddset(&ours, SIGPIPE); /* blocked only: a write to nobody fails with EPIPE */
    sigprocmask(SIG_BLOCK, &ours, &run->mask);
    return run->signals < 0 ? -errno : 0;
}

static void forward(struct weft_run *run, int signal, bool group_has_it) {
    if (group_has_it)
        return;
    for (int pe = 0; pe < run->npes; pe++)
        weft_run_signal(run, pe, signal);
}

static void serve_one(struct weft_run *run, int signal, bool group_has_it) {
    if (signal == SIGCHLD) {
        weft_fate_reap(run);
        return;
    }
    forward(run, signal, group_has_it);
    if (is_deadly(signal))
        weft_end_told(run, signal, group_has_it);
    else if (signal == SIGTSTP)
        kill(getpid(), SIGSTOP); /* as the shell expects of a job that was stopped */
}

void weft_signals_serve(struct weft_run *run) {
    struct signalfd_siginfo info;
    while (read(run->signals, &info, sizeof info) == sizeof info)
        serve_one(run, (int)info.ssi_signo, info.ssi_code == SI_KERNEL);
}
