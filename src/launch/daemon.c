/* SPDX-License-Identifier: BSD-3-Clause */
/* What happens on this host goes up, what happens on others comes down, and the launcher of one
 * host (launch/serve.h) does the rest. The front takes the first cause of an end that it hears of,
 * and tells all hosts; one that has begun an end by another cause is at it already.
 *
 * Entries of the control page are what PEs write; the daemon looks at those of its own PEs, and
 * tells of what has changed. Without a front all PEs of this host end. */
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

/* --- Up --------------------------------------------------------------------------------------- */

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

/* Who has lost the front writes by itself. */
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
            weft_host_link_refuse(&job.front.link,
                                  "there is no memory for what PEs tell each other");
        free(payload);
    }
}

static void tell_pe_status(void *owner, const struct weft_frame *frame, const void *payload) {
    (void)owner;
    tell((enum weft_tree_kind)frame->kind, frame->pe, frame->value, payload, frame->bytes);
}

/* The PEs of this host could not be started, and the reason is said. The front takes it for what
 * the first of them says of itself, which is no silence of this host. */
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

/* --- The life of a daemon --------------------------------------------------------------------- */

static void hear_all(void) {
    struct weft_frame frame;
    const void *payload;
    while (weft_host_link_next(&job.front.link, &frame, &payload))
        weft_daemon_hear(&job, &frame, payload);
}

/* Waits once for the front. */
static void front_await(void) {
    struct pollfd polls[WEFT_UPLINK_POLLS];
    weft_uplink_polls(&job.front, polls);
    poll(polls, WEFT_UPLINK_POLLS, weft_uplink_patience_ms(&job.front));
    weft_uplink_turn(&job.front, polls);
}

/* Until all hosts are there. PEs are started only then, so nothing has to be taken back. */
static int go_await(void) {
    struct weft_frame frame;
    const void *payload;
    while (job.phase == WEFT_TREE_BEFORE_GO) {
        front_await();
        if (weft_host_link_next(&job.front.link, &frame, &payload))
            weft_daemon_hear(&job, &frame, payload);
        else if (job.front.link.end)
            return -EPIPE; /* the front says why, where it can */
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
        return error; /* said */
    error = weft_pe_status_open(&job.pe_status, run->control, npes, tell_pe_status, NULL);
    if (error)
        return weft_failure_say(error, "malloc, for what is told of %d PEs", npes);
    run->above = &above;
    run->forward = job.forward;
    error = weft_spawn_all(run);
    weft_forward_start(job.forward);
    weft_oom_note(&run->before);
    return error;
}

/* Where it may, the daemon comes before PEs that take all processors: its beats say that the host
 * lives. It touches little memory, and the PEs have been started without. */
static void priority_raise(void) {
    if (setpriority(PRIO_PROCESS, 0, PRIORITY) < 0 && errno != EACCES && errno != EPERM)
        fprintf(stderr, "oshrun: host %s: cannot set a priority: %s\n",
                job.start.name[job.start.host], strerror(errno));
}

/* The front is gone, or as good as gone, and with it the job. */
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

/* Whether all that the PEs have written is on its way. After an end it has a moment for that. */
static bool output_is_through(void) {
    int64_t now_ms = weft_clock_ms();
    bool through = weft_forward_finish(job.forward);
    if (!job.over_ms)
        job.over_ms = now_ms;
    return through ||
           (job.run.cause.kind != WEFT_ABORT_NONE && now_ms > job.over_ms + OUTPUT_PATIENCE_MS);
}

/* The daemon stays when its PEs are over: those of others may still come to wait for them. */
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

/* The connection is the front's to close: what is under way to it would be lost. */
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
