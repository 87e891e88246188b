/* SPDX-License-Identifier: BSD-3-Clause */
/* A job has one control page, and each PE has a socket for messages and one for its life. All are
 * inherited memory and descriptors. */
#include "launch/serve.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/machine.h"
#include "boot/hub.h"
#include "launch/descendants.h"
#include "launch/end.h"
#include "launch/failure.h"
#include "launch/hosts.h"
#include "launch/output.h"
#include "launch/reap.h"

/* Indices into the array for poll; the PEs' sockets follow, then the caller's entries. */
enum { POLL_SIGNALS, POLL_NOTICES, POLL_PES };

/* The launcher holds up to two sockets per PE, and all descriptors that PEs contribute to two
 * exchanges. */
static void descriptors_raise(struct weft_run *run) {
    getrlimit(RLIMIT_NOFILE, &run->descriptors);
    weft_machine_raise_descriptors();
}

/* Assigns programs to PEs, in the order of the command line. PEs of other hosts get none. */
static void programs_assign(struct weft_run *run, const struct weft_options *options) {
    int pe = 0;
    for (int i = 0; i < options->nprograms; i++) {
        struct weft_program *program = &options->program[i];
        for (int one = 0; one < program->npes; one++, pe++)
            run->pe[pe].program = weft_boot_is_here(pe) ? program : NULL;
    }
}

int weft_serve_open(struct weft_run *run, const struct weft_options *options,
                    const struct weft_hosts_given *hosts) {
    *run = (struct weft_run){.options = options, .npes = options->npes};
    run->pe = calloc((size_t)run->npes, sizeof *run->pe);
    if (!run->pe)
        return weft_failure_say(-ENOMEM, "malloc, for %d PEs", run->npes);
    programs_assign(run, options);
    if (!hosts) /* otherwise the front prints it */
        weft_options_show(options);
    descriptors_raise(run);
    int error =
        weft_control_create(run->npes, hosts ? hosts->nhosts : 1, &run->control, &run->control_fd);
    if (error)
        return weft_failure_say(error, "memfd_create, for the control page of %d PEs", run->npes);
    if (pipe2(run->notices, O_CLOEXEC) < 0)
        return weft_failure_say(-errno, "pipe2, for notices of ends");
    if (options->tag_output)
        error = weft_output_open(&run->output, run->npes,
                                 options->tag_host ? weft_hosts_own_name() : NULL);
    if (error)
        return error;
    if (options->timeout_s)
        run->time_is_up_ms = weft_clock_ms() + (int64_t)options->timeout_s * 1000;
    run->control->cores = weft_machine_cores();
    if (hosts)
        weft_control_write_hosts(run->control, hosts);
    for (int pe = 0; pe < run->npes; pe++)
        run->pe[pe].watch = (struct weft_watch){
            .pe = pe, .pipe = run->notices[1], .alive = &run->control->pe[pe].alive};
    weft_descendants_adopt();
    return weft_signals_open(&run->signals);
}

static void polls_fill(const struct weft_run *run, struct pollfd *polls) {
    polls[POLL_SIGNALS] = (struct pollfd){.fd = run->signals.signals, .events = POLLIN};
    polls[POLL_NOTICES] = (struct pollfd){.fd = run->notices[0], .events = POLLIN};
    for (int pe = 0; run->hub && pe < run->npes; pe++)
        polls[POLL_PES + pe] = (struct pollfd){.fd = weft_hub_socket(run->hub, pe),
                                               .events = weft_hub_events(run->hub, pe)};
}

static void notice_serve(struct weft_run *run) {
    struct weft_notice notice;
    if (read(run->notices[0], &notice, sizeof notice) == sizeof notice)
        weft_reap_noticed(run, &notice);
}

static void signal_serve(struct weft_run *run, int signal, bool group_has_it) {
    if (signal == SIGCHLD) {
        weft_reap_children(run);
        return;
    }
    for (int pe = 0; !group_has_it && pe < run->npes; pe++)
        weft_run_signal(run, pe, signal);
    if (weft_signal_is_deadly(signal))
        weft_end_signaled(run, signal, group_has_it);
    else if (signal == SIGTSTP)
        kill(getpid(), SIGSTOP); /* as a shell expects */
}

/* Handles pending signals: forwards them, or collects children. A signal that the kernel sends for
 * the terminal reaches the whole process group including the PEs, and is not forwarded. */
static void signals_serve(struct weft_run *run) {
    int signal;
    bool from_kernel;
    while (weft_signals_next(&run->signals, &signal, &from_kernel))
        signal_serve(run, signal, from_kernel);
}

/* Signals are handled first: PEs that die after a Ctrl-C are not to blame. */
static void polls_serve(struct weft_run *run, const struct pollfd *polls) {
    if (polls[POLL_SIGNALS].revents)
        signals_serve(run);
    for (int pe = 0; run->hub && pe < run->npes; pe++)
        if (polls[POLL_PES + pe].revents)
            weft_reap_serve(run, pe);
    if (polls[POLL_NOTICES].revents)
        notice_serve(run);
}

bool weft_serve_is_over(const struct weft_run *run) {
    return run->phase == WEFT_OVER || (run->phase < WEFT_GRACE && weft_reap_all_over(run));
}

static int patience_shorter(int own_ms, int others_ms) {
    return own_ms < 0 || (others_ms >= 0 && others_ms < own_ms) ? others_ms : own_ms;
}

void weft_serve_turn(struct weft_run *run, struct pollfd *others, int nothers, int patience_ms) {
    int at = POLL_PES + (run->hub ? run->npes : 0),
        limit_ms = patience_shorter(weft_end_patience(run), weft_reap_patience(run));
    if (run->hub && weft_hub_is_waiting(run->hub))
        limit_ms = patience_shorter(limit_ms, WEFT_HUB_LOOK_MS);
    struct pollfd polls[at + nothers];
    polls_fill(run, polls);
    if (nothers)
        memcpy(&polls[at], others, (size_t)nothers * sizeof *others);
    bool some = poll(polls, (nfds_t)(at + nothers), patience_shorter(limit_ms, patience_ms)) > 0;
    if (some)
        polls_serve(run, polls);
    for (int i = 0; i < nothers; i++)
        others[i].revents = some ? polls[at + i].revents : 0;
    if (run->hub) {
        weft_hub_retry(run->hub);
        weft_hub_judge(run->hub, run->control);
    }
    weft_reap_judge_lost(run);
    weft_end_advance(run);
}
