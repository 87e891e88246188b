/* SPDX-License-Identifier: BSD-3-Clause */
/* The daemon sends up what happens on its host, and receives what happens on other hosts;
 * launch/serve.h does the rest, as for a job on one host. The front accepts the first cause of an
 * end and sends it to all hosts. A host that has begun to end for another cause ignores it.
 *
 * PEs write their entries of the control page. The daemon reads the entries of its own PEs and
 * sends changes to the front. If the front is lost, the daemon ends all PEs of its host. */
#include "launch/daemon.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <weft/version.h>
#include "base/machine.h"
#include "boot/hub.h"
#include "launch/end.h"
#include "launch/failure.h"
#include "launch/reap.h"
#include "launch/relay.h"
#include "launch/serve.h"
#include "launch/spawn.h"

enum {
    STATUS_SYSTEM = 71,
    PRIORITY = -10,
    LOOK_MS = 50,
    OUTPUT_PATIENCE_MS = 1000,
    LAST_WORDS_MS = 2000
};

static struct weft_daemon job = {.phase = WEFT_TREE_BEFORE_GO};

/* --- Sending ---------------------------------------------------------------------------------- */

static void tell(enum weft_tree_kind kind, int pe, int value, const void *payload, size_t bytes) {
    struct weft_frame frame = {
        .kind = kind, .bytes = (uint32_t)bytes, .pe = pe, .value = value, .host = job.start.host};
    weft_host_link_send(&job.front.link, &frame, payload);
}

static void tell_hello(void) {
    struct weft_tree_hello hello = {.layout = WEFT_TREE_LAYOUT,
                                    .cores = weft_machine_cores(),
                                    .pid = getpid(),
                                    .version = WEFT_VERSION_STRING};
    tell(WEFT_TREE_HELLO, -1, 0, &hello, sizeof hello);
}

static void tell_cause(const struct weft_cause *cause) {
    struct weft_tree_cause told = weft_tree_cause_make(cause);
    tell(WEFT_TREE_CAUSE, -1, 0, &told, sizeof told);
}

static void tell_ending(struct weft_run *run) {
    if (!job.heard_cause)
        tell_cause(&run->cause);
}

static void tell_cut(struct weft_run *run, int pe, int host) {
    tell_cause(&(struct weft_cause){.kind = WEFT_ABORT_CUT,
                                    .pe = pe,
                                    .pid = weft_run_pid(run, pe),
                                    .detail = host,
                                    .state = weft_run_state(run, pe)});
}

/* After the front is lost, the line is written to stderr. */
static void tell_line(struct weft_run *run, bool of_cause, const char *line) {
    char text[WEFT_TREE_LINE_MAX];
    int bytes = snprintf(text, sizeof text, "oshrun: %s", line);
    (void)run;
    if (job.front.link.end)
        fprintf(stderr, "%s\n", text);
    else if (!of_cause || !job.heard_cause)
        tell(WEFT_TREE_LINE, -1, of_cause, text, (size_t)bytes);
}

static void tell_output(void *owner, int pe, int stream, const void *bytes, size_t count) {
    (void)owner;
    tell(WEFT_TREE_OUTPUT, pe, stream, bytes, count);
}

static void tell_taken(void *owner, size_t count) {
    (void)owner;
    tell(WEFT_TREE_TAKEN, -1, (int)count, NULL, 0);
}

static void tell_gathered(void) {
    unsigned char *payload;
    size_t bytes;
    while (job.run.hub && !job.front.link.end && weft_hub_gather(job.run.hub, &payload, &bytes)) {
        if (payload)
            tell(WEFT_TREE_GAVE, -1, 0, payload, bytes);
        else
            weft_host_link_refuse(&job.front.link, "there is no memory for an exchange");
        free(payload);
    }
}

static void tell_pe_status(void *owner, const struct weft_frame *frame, const void *payload) {
    (void)owner;
    tell((enum weft_tree_kind)frame->kind, frame->pe, frame->value, payload, frame->bytes);
}

/* Reports that the PEs of this host could not be started; the reason has been logged. The cause is
 * sent as an error of the host's first PE, so that the front does not treat the host as silent. */
static void tell_unstarted(void) {
    int first = 0;
    while (first < job.start.options.npes - 1 && job.start.host_of[first] != job.start.host)
        first++;
    struct weft_tree_done done = {.status = STATUS_SYSTEM, .first_pe = first};
    tell_cause(
        &(struct weft_cause){.kind = WEFT_ABORT_ERROR, .pe = first, .detail = STATUS_SYSTEM});
    tell(WEFT_TREE_DONE, -1, 0, &done, sizeof done);
}

static void tell_done(void) {
    const struct weft_run *run = &job.run;
    struct weft_tree_done done = {.status = weft_end_status(run),
                                  .first_status = run->first_status,
                                  .first_pe = run->first_pe,
                                  .first_pid = weft_run_pid(run, run->first_pe),
                                  .failures = run->failures};
    weft_pe_status_tell(job.pe_status);
    tell(WEFT_TREE_DONE, -1, 0, &done, sizeof done);
    job.phase = WEFT_TREE_AFTER_DONE;
}

/* --- Main loop -------------------------------------------------------------------------------- */

static void hear_all(void) {
    struct weft_frame frame;
    const void *payload;
    while (weft_host_link_next(&job.front.link, &frame, &payload))
        weft_daemon_hear(&job, &frame, payload);
}

/* Serves the connection to the front once. */
static void front_await(void) {
    struct pollfd polls[WEFT_UPLINK_POLLS];
    weft_uplink_polls(&job.front, polls);
    poll(polls, WEFT_UPLINK_POLLS, weft_uplink_patience_ms(&job.front));
    weft_uplink_turn(&job.front, polls);
}

/* Waits until all hosts have connected. PEs start only then, so on failure there is nothing to
 * undo. */
static int go_await(void) {
    struct weft_frame frame;
    const void *payload;
    while (job.phase == WEFT_TREE_BEFORE_GO) {
        front_await();
        if (weft_host_link_next(&job.front.link, &frame, &payload))
            weft_daemon_hear(&job, &frame, payload);
        else if (job.front.link.end)
            return -EPIPE; /* the front reports the reason, if it can */
    }
    return 0;
}

static int hosts_learn(struct weft_host *host, struct weft_hosts_given *given) {
    const struct weft_start *start = &job.start;
    for (int i = 0; i < start->nhosts; i++)
        snprintf(host[i].name, sizeof host[i].name, "%s", start->name[i]);
    *given = (struct weft_hosts_given){.npes = start->options.npes,
                                       .nhosts = start->nhosts,
                                       .here = start->host,
                                       .host_of = start->host_of,
                                       .host = host,
                                       .network = &job.front.network};
    return weft_hosts_set(given);
}

static int pes_start(void) {
    static const struct weft_run_above above = {tell_ending, tell_cut, tell_line};
    static const struct weft_forward_above streams = {tell_output, tell_taken, NULL};
    struct weft_host host[job.start.nhosts];
    struct weft_hosts_given given;
    struct weft_run *run = &job.run;
    int npes = job.start.options.npes;
    int error = hosts_learn(host, &given);
    if (error)
        return weft_failure_say(error, "malloc, for %d PEs on %d hosts", npes, job.start.nhosts);
    error = weft_serve_open(run, &job.start.options, &given);
    error = error ? error : weft_forward_open(&job.forward, npes, &streams);
    if (error)
        return error; /* logged */
    error = weft_pe_status_open(&job.pe_status, run->control, npes, tell_pe_status, NULL);
    if (error)
        return weft_failure_say(error, "malloc, for the states of %d PEs", npes);
    run->above = &above;
    run->forward = job.forward;
    error = weft_spawn_all(run);
    weft_forward_start(job.forward);
    weft_oom_note(&run->before);
    return error;
}

/* Raises the daemon's priority if permitted, so that its heartbeats are sent even if PEs use all
 * processors. The daemon uses little memory, and PEs, which are already running, do not inherit the
 * priority. */
static void priority_raise(void) {
    if (setpriority(PRIO_PROCESS, 0, PRIORITY) < 0 && errno != EACCES && errno != EPERM)
        fprintf(stderr, "oshrun: host %s: cannot raise its own priority (setpriority): %s%s\n",
                job.start.name[job.start.host], strerror(errno), weft_remedy(-errno).text);
}

/* Ends the PEs of this host because the front is lost. */
static void front_mourn(void) {
    struct weft_cause lost = {.kind = WEFT_ABORT_FRONT, .pe = -1};
    if (job.run.phase >= WEFT_GRACE)
        return;
    fprintf(stderr, "oshrun: host %s has lost the launcher (%s); ending the job there\n",
            job.start.name[job.start.host], job.front.link.why);
    job.run.announced = true;
    weft_end_begin(&job.run, lost);
}

static void turn(void) {
    int count = WEFT_UPLINK_POLLS + weft_forward_count(job.forward);
    int patience_ms = weft_uplink_patience_ms(&job.front);
    struct pollfd polls[count];
    weft_uplink_polls(&job.front, polls);
    weft_forward_polls(job.forward, polls + WEFT_UPLINK_POLLS);
    weft_serve_turn(&job.run, polls, count, patience_ms < LOOK_MS ? patience_ms : LOOK_MS);
    weft_uplink_turn(&job.front, polls);
    hear_all();
    weft_forward_serve(job.forward, polls + WEFT_UPLINK_POLLS);
    tell_gathered();
    weft_pe_status_tell(job.pe_status);
    if (job.front.link.end && !job.bye && job.phase != WEFT_TREE_AFTER_DONE)
        front_mourn();
}

/* Returns whether all output of the PEs has been sent. After an end by a cause there is a time
 * limit. */
static bool output_is_through(void) {
    int64_t now_ms = weft_clock_ms();
    bool through = weft_forward_finish(job.forward);
    if (!job.over_ms)
        job.over_ms = now_ms;
    return through ||
           (job.run.cause.kind != WEFT_ABORT_NONE && now_ms > job.over_ms + OUTPUT_PATIENCE_MS);
}

/* After its PEs have ended the daemon sends the rest of their output and then DONE, and runs until
 * the front answers BYE. If PEs of other hosts still wait for its PEs, the front finds that
 * (front_hear.c). */
static void job_watch(void) {
    while (!job.bye) {
        turn();
        bool over = weft_serve_is_over(&job.run);
        if (over && job.front.link.end)
            return;
        if (over && job.phase != WEFT_TREE_AFTER_DONE && output_is_through())
            tell_done();
    }
}

/* Waits until the front closes the connection. If the daemon closed it, data still in transit would
 * be lost. */
static void parting_await(void) {
    int64_t until_ms = weft_clock_ms() + LAST_WORDS_MS;
    struct weft_frame frame;
    const void *payload;
    while (!job.front.link.end && weft_clock_ms() < until_ms) {
        front_await();
        while (weft_host_link_next(&job.front.link, &frame, &payload))
            continue;
    }
}

int weft_daemon_main(void) {
    puts(WEFT_TREE_STARTED);
    fflush(stdout);
    int error = weft_start_read(STDIN_FILENO, &job.start);
    if (error == 0)
        weft_failure_set_host(job.start.name[job.start.host]);
    if (error == 0 && job.start.below > 1)
        return weft_relay_main(&job.start);
    error = error ? error : weft_uplink_open(&job.front, &job.start);
    if (error)
        return STATUS_SYSTEM;
    tell_hello();
    error = go_await();
    if (error)
        return STATUS_SYSTEM;
    error = pes_start();
    if (error) {
        tell_unstarted();
        parting_await();
        return STATUS_SYSTEM;
    }
    priority_raise();
    job_watch();
    weft_end_tell_other_library(&job.run);
    parting_await();
    weft_forward_free(job.forward);
    return 0;
}
