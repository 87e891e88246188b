/* SPDX-License-Identifier: BSD-3-Clause */
/* The main loop of the front. */
#include "launch/front.h"
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/env.h"
#include "base/machine.h"
#include "launch/failure.h"

enum { SIGNALED_MS = 2000, STATUS_SYSTEM = 71 };

/* Indices into the array for poll; the branch's entries follow. */
enum { POLL_SIGNALS, POLL_WRITER, POLL_INPUT, POLL_BRANCH };

/* --- Input ----------------------------------------------------------------------------------- */

/* A background process that reads from a terminal is stopped, and a stopped front would be silent.
 * So the terminal is read only while the front is in the foreground. */
static bool input_may_be_read(const struct weft_front *front) {
    bool wanted = !front->input_over && front->phase == WEFT_FRONT_RUNNING &&
                  front->input_untaken + WEFT_TREE_PIECE_MAX <= WEFT_TREE_INPUT_MAX;
    return wanted && (!isatty(STDIN_FILENO) || tcgetpgrp(STDIN_FILENO) == getpgrp());
}

static void input_serve(struct weft_front *front) {
    static char bytes[WEFT_TREE_PIECE_MAX];
    ssize_t count = read(STDIN_FILENO, bytes, sizeof bytes);
    if (count < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    count = count < 0 ? 0 : count;
    front->input_over = count == 0;
    front->input_untaken += (int32_t)count;
    struct weft_frame frame = {.kind = WEFT_TREE_INPUT, .bytes = (uint32_t)count};
    weft_front_send(front, front->host_of[0], frame, bytes);
}

/* --- Output ---------------------------------------------------------------------------------- */

static void writer_serve(struct weft_front *front) {
    for (int host = 0; host < front->nhosts; host++) {
        int32_t taken = weft_writer_taken(front->writer, host);
        front->host[host].untaken -= taken;
        if (taken > 0)
            weft_front_send(front, host,
                            (struct weft_frame){.kind = WEFT_TREE_TAKEN, .value = taken}, NULL);
    }
    for (int stream = 1; stream <= 2; stream++)
        if (weft_writer_lost(front->writer, stream))
            weft_front_send(front, WEFT_TREE_ALL,
                            (struct weft_frame){.kind = WEFT_TREE_CLOSED, .value = stream}, NULL);
}

/* --- Signals --------------------------------------------------------------------------------- */

/* Ends a job of which no PE runs yet. */
static void start_signaled(struct weft_front *front, int signal) {
    front->cause = (struct weft_cause){.kind = WEFT_ABORT_LAUNCHER, .pe = -1, .detail = signal};
    front->cause_host = -1;
    front->phase = WEFT_FRONT_OVER;
}

/* Daemons end their PEs after the first deadly signal (a signal from the terminal only if PEs do
 * not survive it), and kill them after the second. If the job has not ended in time, the front ends
 * it. */
static void deadly_note(struct weft_front *front, int signal, bool from_terminal) {
    bool second = front->end_signal != 0;
    front->end_signal = signal;
    front->end_by_terminal = from_terminal;
    if (second || !from_terminal)
        front->signal_ends_ms = weft_clock_ms() + SIGNALED_MS;
    if (front->phase == WEFT_FRONT_STARTING)
        start_signaled(front, signal);
}

static void signal_serve(struct weft_front *front, int signal, bool from_terminal) {
    if (weft_signal_is_deadly(signal))
        deadly_note(front, signal, from_terminal);
    if (signal == SIGCHLD)
        weft_branch_reap(&front->branch);
    else
        weft_front_send(
            front, WEFT_TREE_ALL,
            (struct weft_frame){.kind = WEFT_TREE_SIGNAL, .value = signal, .pe = from_terminal},
            NULL);
    if (signal == SIGTSTP)
        kill(getpid(), SIGSTOP); /* as a shell expects */
}

static void signals_serve(struct weft_front *front) {
    int signal;
    bool from_kernel;
    while (weft_signals_next(&front->signals, &signal, &from_kernel))
        signal_serve(front, signal, from_kernel);
}

/* --- Time ------------------------------------------------------------------------------------ */

/* Prints "; also late: b, c and 5 more". */
static void others_late(const struct weft_front *front, int host, char *text, size_t bytes) {
    enum { NAMED = 4 }; /* each name has at most 63 bytes */
    int late = 0;
    size_t used = 0;
    text[0] = '\0';
    for (int other = host + 1; other < front->nhosts; other++)
        if (front->host[other].state == WEFT_HOST_STARTED && late++ < NAMED)
            used += (size_t)snprintf(text + used, bytes - used, "%s%s",
                                     late > 1 ? ", " : "; also late: ", front->host[other].name);
    if (late > NAMED)
        snprintf(text + used, bytes - used, " and %d more", late - NAMED);
}

static void start_is_late(struct weft_front *front) {
    char others[320];
    int host = 0;
    while (host < front->nhosts && front->host[host].state != WEFT_HOST_STARTED)
        host++;
    if (host == front->nhosts)
        return; /* all have answered */
    const struct weft_branch_child *child = &front->branch.child[front->host[host].child];
    others_late(front, host, others, sizeof others);
    if (child->came)
        weft_front_refuse(front, host,
                          "it has not called host %s back within %g s (WEFT_START_TIMEOUT)%s",
                          child->name, weft_env.start_timeout, others);
    else if (!child->remote.here && !child->remote.through)
        weft_front_refuse(front, host,
                          "'%s' has not reached it within %g s (WEFT_START_TIMEOUT)%s: try `%s %s "
                          "true`, which must ask nothing and print nothing",
                          weft_env.ssh, weft_env.start_timeout, others, weft_env.ssh,
                          child->remote.name);
    else
        weft_front_refuse(
            front, host,
            "it has not called back within %g s (WEFT_START_TIMEOUT)%s; it must be able "
            "to reach port %d of this host",
            weft_env.start_timeout, others, weft_tls_listener_port(front->branch.listener));
}

void weft_front_time(struct weft_front *front) {
    int64_t now = weft_clock_ms();
    weft_branch_turn(&front->branch);
    if (front->phase == WEFT_FRONT_STARTING && now >= front->phase_ends_ms)
        start_is_late(front);
    if (front->signal_ends_ms && now >= front->signal_ends_ms)
        weft_front_end(
            front,
            (struct weft_cause){.kind = WEFT_ABORT_LAUNCHER, .pe = -1, .detail = front->end_signal},
            -1);
    if (front->phase == WEFT_FRONT_ENDING && now >= front->phase_ends_ms)
        front->phase = WEFT_FRONT_OVER;
    if (front->time_is_up_ms && now >= front->time_is_up_ms)
        weft_front_end(front,
                       (struct weft_cause){.kind = WEFT_ABORT_TIMEOUT,
                                           .pe = -1,
                                           .detail = front->options->timeout_s},
                       -1);
}

/* --- The loop -------------------------------------------------------------------------------- */

static void polls_fill(const struct weft_front *front, struct pollfd *polls) {
    polls[POLL_SIGNALS] = (struct pollfd){.fd = front->signals.signals, .events = POLLIN};
    polls[POLL_WRITER] =
        (struct pollfd){.fd = weft_writer_descriptor(front->writer), .events = POLLIN};
    polls[POLL_INPUT] =
        (struct pollfd){.fd = input_may_be_read(front) ? STDIN_FILENO : -1, .events = POLLIN};
    weft_branch_polls(&front->branch, &polls[POLL_BRANCH]);
}

static void polls_serve(struct weft_front *front, const struct pollfd *polls) {
    if (polls[POLL_SIGNALS].revents)
        signals_serve(front);
    weft_branch_serve(&front->branch, &polls[POLL_BRANCH]);
    if (polls[POLL_WRITER].revents)
        writer_serve(front);
    if (polls[POLL_INPUT].revents)
        input_serve(front);
}

static bool front_is_over(const struct weft_front *front) {
    bool all = true;
    for (int host = 0; host < front->nhosts; host++)
        all = all && front->host[host].state >= WEFT_HOST_DONE;
    return all || front->phase == WEFT_FRONT_OVER;
}

static void front_watch(struct weft_front *front) {
    nfds_t count = POLL_BRANCH + (nfds_t)weft_branch_count(&front->branch);
    struct pollfd polls[count];
    while (!front_is_over(front)) {
        polls_fill(front, polls);
        if (poll(polls, count, WEFT_TREE_BEAT_MS / 2) > 0)
            polls_serve(front, polls);
        weft_front_time(front);
    }
}

static int hosts_make(struct weft_front *front) {
    const struct weft_host_list *list = &front->options->hosts;
    struct weft_host *names = calloc((size_t)list->count, sizeof *names);
    front->host = calloc((size_t)list->count, sizeof *front->host);
    front->name = calloc((size_t)list->count, sizeof *front->name);
    if (!names || !front->host || !front->name ||
        weft_control_create(front->npes, front->nhosts, &front->control, NULL) != 0 ||
        weft_pe_status_open(&front->pe_status, front->control, front->npes, NULL, NULL) != 0)
        return -ENOMEM;
    for (int i = 0; i < list->count; i++) {
        struct weft_front_host *host = &front->host[i];
        const struct weft_listed_host *listed = &list->host[i];
        host->name = front->name[i] = listed->shown;
        snprintf(names[i].name, sizeof names[i].name, "%s", listed->shown);
    }
    for (int pe = front->npes - 1; pe >= 0; pe--) {
        front->host[front->host_of[pe]].npes++;
        front->host[front->host_of[pe]].first_pe = pe;
    }
    int error = weft_hosts_set(&(struct weft_hosts_given){.npes = front->npes,
                                                          .nhosts = front->nhosts,
                                                          .here = -1,
                                                          .host_of = front->host_of,
                                                          .host = names});
    free(names);
    return error;
}

static int front_open(struct weft_front *front, const struct weft_options *options) {
    *front = (struct weft_front){.options = options,
                                 .npes = options->npes,
                                 .nhosts = options->hosts.count,
                                 .host_of = options->hosts.of,
                                 .exchanges = {.npes = options->npes,
                                               .nhosts = options->hosts.count,
                                               .share = weft_front_share,
                                               .owner = front},
                                 .cause_host = -1,
                                 .first_host = -1};
    front->phase_ends_ms = weft_clock_ms() + (int64_t)(weft_env.start_timeout * 1000);
    if (options->timeout_s)
        front->time_is_up_ms = weft_clock_ms() + (int64_t)options->timeout_s * 1000;
    weft_machine_raise_descriptors();
    if (hosts_make(front) != 0)
        return weft_failure_say(-ENOMEM, "malloc, for %d PEs on %d hosts", front->npes,
                                front->nhosts);
    return weft_signals_open(&front->signals);
}

static int writer_open(struct weft_front *front) {
    return weft_writer_open(&front->writer,
                            &(struct weft_writer_options){.npes = front->npes,
                                                          .nhosts = front->nhosts,
                                                          .host_of = front->host_of,
                                                          .name = front->name,
                                                          .tag = front->options->tag_output,
                                                          .tag_host = front->options->tag_host});
}

static void hosts_show(const struct weft_front *front) {
    char pes[128];
    weft_options_show(front->options);
    for (int host = 0; host < front->nhosts; host++) {
        weft_boot_pes_text(host, pes, sizeof pes);
        fprintf(stderr, "oshrun: host %s has %s\n", front->name[host], pes);
    }
}

/* Dies by SIGINT after a Ctrl-C: a shell stops its script only if the command dies by the signal.
 */
static void signal_die(const struct weft_front *front) {
    bool meant = front->cause.kind == WEFT_ABORT_LAUNCHER && front->cause.detail == SIGINT;
    if (!meant || !front->end_by_terminal)
        return;
    weft_signals_restore(&front->signals);
    raise(SIGINT);
}

/* If there are more hosts than one node may serve, relays on some of them serve the others. */
static int branch_start(struct weft_front *front) {
    const struct weft_host_list *list = &front->options->hosts;
    struct weft_branch_host *host = calloc((size_t)list->count, sizeof *host);
    struct weft_branch_plan plan = {
        .host = host, .nhosts = list->count, .count = list->count, .fan_out = weft_env.fan_out};
    for (int i = 0; host && i < list->count; i++)
        host[i] = (struct weft_branch_host){.name = list->host[i].shown,
                                            .called = list->host[i].here ? list->host[i].shown
                                                                         : list->host[i].name,
                                            .here = list->host[i].here};
    front->branch = (struct weft_branch){.above = &weft_front_above, .owner = front};
    int error = host ? weft_branch_open(&front->branch, &plan) : -ENOMEM;
    if (error)
        weft_failure_say(error, "malloc, for %d hosts", list->count);
    for (int i = 0; error == 0 && i < list->count; i++)
        front->host[i].child = weft_branch_child_of(&front->branch, i);
    error = error ? error : weft_front_start(front, &plan);
    free(host);
    return error;
}

int weft_front_main(const struct weft_options *options) {
    static struct weft_front
        front; /* static: the writer's thread may still use it while the process ends */
    if (weft_env_read() != 0)
        return WEFT_STATUS_USAGE;
    if (front_open(&front, options) != 0 || writer_open(&front) != 0)
        return STATUS_SYSTEM;
    if (options->verbose)
        hosts_show(&front);
    if (branch_start(&front) == 0)
        front_watch(&front);
    else
        front.status = STATUS_SYSTEM;
    int status = weft_front_finish(&front);
    signal_die(&front);
    return status;
}
