/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames from the front are checked although the front has the key: it may be broken or of another
 * version. A frame cannot choose which memory the daemon reads and writes. */
#include "boot/hub.h"
#include "launch/daemon.h"
#include "launch/end.h"
#include "launch/reap.h"

static void refuse(struct weft_daemon *daemon, const char *why) {
    weft_host_link_refuse(&daemon->front.link, why);
}

static void hear_shared(struct weft_daemon *daemon, const void *payload, size_t bytes) {
    struct weft_hub *hub = daemon->run.hub; /* NULL: the job ends */
    if (hub && weft_hub_complete(hub, payload, bytes) != 0)
        refuse(daemon, "it has sent the result of an exchange that no PE waits for");
}

/* A PE of another host may have joined, so PEs that ended without joining are judged again. */
static void hear_pe_status(struct weft_daemon *daemon, const struct weft_frame *frame,
                           const void *payload) {
    const char *objection = weft_pe_status_hear(daemon->pe_status, -1, frame, payload);
    if (objection)
        refuse(daemon, objection);
    else
        weft_reap_judge_absent(&daemon->run);
}

/* Adds the signal that killed the culprit, if it arrives after the notice of the death. */
static void cause_learn(struct weft_daemon *daemon, const struct weft_cause *theirs) {
    struct weft_cause *cause = &daemon->run.cause;
    if (daemon->heard_cause && cause->kind == WEFT_ABORT_DIED && theirs->pe == cause->pe &&
        cause->detail == 0 && theirs->kind == WEFT_ABORT_DIED) {
        cause->detail = theirs->detail;
        atomic_store(&daemon->run.control->abort_detail, theirs->detail);
    }
}

static void hear_cause(struct weft_daemon *daemon, const void *payload, size_t bytes) {
    struct weft_run *run = &daemon->run;
    struct weft_cause theirs;
    if (!weft_tree_cause_read(&theirs, payload, bytes, daemon->start.options.npes,
                              daemon->start.nhosts)) {
        refuse(daemon, "it has sent an invalid cause");
        return;
    }
    if (daemon->phase == WEFT_TREE_BEFORE_GO)
        return; /* no PE has been started, and the front will close the connection */
    if (run->phase >= WEFT_GRACE) {
        cause_learn(daemon, &theirs);
        return;
    }
    daemon->heard_cause = run->announced = true;
    if (theirs.pe >= 0 && !weft_run_has(run, theirs.pe))
        atomic_store(&run->control->pe[theirs.pe].pid, theirs.pid);
    weft_end_begin(run, theirs);
}

static void hear_signal(struct weft_daemon *daemon, int signal, bool by_terminal) {
    struct weft_run *run = &daemon->run;
    if (!weft_signal_is_forwarded(signal)) {
        refuse(daemon, "it has sent a signal that is not forwarded");
        return;
    }
    if (daemon->phase == WEFT_TREE_BEFORE_GO)
        return;                                    /* no PE has been started */
    bool group = by_terminal || signal == SIGCONT; /* like a shell, which continues the whole job */
    for (int pe = 0; pe < run->npes; pe++)
        (group ? weft_run_signal_group : weft_run_signal)(run, pe, signal);
    if (weft_signal_is_deadly(signal))
        weft_end_signaled(run, signal, by_terminal);
}

static void hear_taken(struct weft_daemon *daemon, int count) {
    if (count < 0)
        refuse(daemon, "it has acknowledged a negative amount of output");
    else
        weft_forward_taken(daemon->forward, (size_t)count);
}

static void hear_closed(struct weft_daemon *daemon, int stream) {
    if (stream != 1 && stream != 2)
        refuse(daemon, "it has closed a stream other than 1 and 2");
    else if (daemon->phase != WEFT_TREE_BEFORE_GO)
        weft_forward_close(daemon->forward, stream);
}

void weft_daemon_hear(struct weft_daemon *daemon, const struct weft_frame *frame,
                      const void *payload) {
    if (!weft_tree_may_descend(frame->kind, daemon->phase)) {
        refuse(daemon, "it has sent a frame that is not allowed now");
        return;
    }
    switch (frame->kind) {
    case WEFT_TREE_GO:
        daemon->phase = WEFT_TREE_AT_WORK;
        break;
    case WEFT_TREE_SHARED:
        hear_shared(daemon, payload, frame->bytes);
        break;
    case WEFT_TREE_PE_STATUS:
    case WEFT_TREE_LONG_WAIT:
        hear_pe_status(daemon, frame, payload);
        break;
    case WEFT_TREE_INPUT:
        if (weft_forward_input(daemon->forward, payload, frame->bytes) != 0)
            refuse(daemon, "it has sent more input than it may");
        break;
    case WEFT_TREE_TAKEN:
        hear_taken(daemon, frame->value);
        break;
    case WEFT_TREE_SIGNAL:
        hear_signal(daemon, frame->value, frame->pe == 1);
        break;
    case WEFT_TREE_CAUSE:
        hear_cause(daemon, payload, frame->bytes);
        break;
    case WEFT_TREE_CLOSED:
        hear_closed(daemon, frame->value);
        break;
    case WEFT_TREE_BYE:
        daemon->bye = true;
        break;
    }
}
