/* SPDX-License-Identifier: BSD-3-Clause */
/* Signals are blocked and read from a signalfd. Threads that tools start in a process may not block
 * them; such a thread forwards the signals that it gets to the reading thread. Signals that were
 * ignored at the start stay ignored, as nohup and background jobs of shells expect. */
#include "launch/signals.h"
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/signalfd.h>
#include <unistd.h>
#include "launch/failure.h"

/* Deadly signals come first. */
static const int forwarded[] = {SIGINT,  SIGTERM, SIGHUP,  SIGQUIT,
                                SIGUSR1, SIGUSR2, SIGCONT, SIGTSTP};
enum { FORWARDED = sizeof forwarded / sizeof *forwarded, DEADLY = 4 };

bool weft_signal_is_deadly(int signal) {
    for (int i = 0; i < DEADLY; i++)
        if (forwarded[i] == signal)
            return true;
    return false;
}

bool weft_signal_is_forwarded(int signal) {
    for (int i = 0; i < FORWARDED; i++)
        if (forwarded[i] == signal)
            return true;
    return false;
}

static pthread_t reader;

/* Runs in a thread that does not block signals, and forwards the signal to the thread that reads
 * them. */
static void signal_hand_on(int signal, siginfo_t *info, void *context) {
    (void)context;
    pthread_sigqueue(reader, signal, (union sigval){.sival_int = info->si_code == SI_KERNEL});
}

static const struct sigaction handing_on = {.sa_sigaction = signal_hand_on,
                                            .sa_flags = SA_SIGINFO | SA_RESTART};

static bool signal_is_ignored(int signal) {
    struct sigaction found;
    sigaction(signal, NULL, &found);
    return found.sa_handler == SIG_IGN;
}

int weft_signals_open(struct weft_signals *signals) {
    sigset_t ours;
    sigemptyset(&ours);
    sigaddset(&ours, SIGCHLD);
    for (int i = 0; i < FORWARDED; i++)
        if (!signal_is_ignored(forwarded[i]))
            sigaddset(&ours, forwarded[i]);
    signals->signals = signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signals->signals < 0)
        return weft_failure_say(-errno, "signalfd, to read signals");
    reader = pthread_self();
    sigset_t blocked = ours;
    sigaddset(&blocked, SIGPIPE); /* not read: a write without a reader fails with EPIPE */
    sigprocmask(SIG_BLOCK, &blocked, &signals->mask);
    sigaction(SIGCHLD, &handing_on,
              &signals->sigchld); /* if SIGCHLD were ignored, waitpid would find no children */
    for (int i = 0; i < FORWARDED; i++)
        if (sigismember(&ours, forwarded[i]))
            sigaction(forwarded[i], &handing_on, NULL);
    return 0;
}

void weft_signals_restore(const struct weft_signals *signals) {
    const struct sigaction standard = {.sa_handler = SIG_DFL};
    for (int i = 0; i < FORWARDED; i++)
        if (!signal_is_ignored(forwarded[i]))
            sigaction(forwarded[i], &standard, NULL);
    sigaction(SIGCHLD, &signals->sigchld, NULL);
    sigprocmask(SIG_SETMASK, &signals->mask, NULL);
}

static bool signal_is_of_kernel(const struct signalfd_siginfo *info) {
    bool handed_on = info->ssi_code == SI_QUEUE && info->ssi_pid == (uint32_t)getpid();
    return info->ssi_code == SI_KERNEL || (handed_on && info->ssi_int);
}

bool weft_signals_next(const struct weft_signals *signals, int *signal, bool *from_kernel) {
    struct signalfd_siginfo info;
    if (read(signals->signals, &info, sizeof info) != sizeof info)
        return false;
    *signal = (int)info.ssi_signo;
    *from_kernel = signal_is_of_kernel(&info);
    return true;
}
