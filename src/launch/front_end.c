/* SPDX-License-Identifier: BSD-3-Clause */
/* Each daemon ends its own PEs in the phases of launch/end.c; the front waits for that. After the
 * time limit the front closes the input and the connection of the remaining daemons, which then
 * kill their PEs. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/clock.h"
#include "launch/front.h"

enum {
    ENDING_MS = 4000, /* twice the duration of the phases of launch/end.c */
    OUTPUT_PATIENCE_MS = 1000,
    OUTPUT_LOOK_MS = 50,
    PROCESSES_MS = 2000, /* for ssh to end after the daemon */
    UNSTARTED_MS = 200,  /* if no PE has run */
    STATUS_SYSTEM = 71,
    STATUS_TIMEOUT = 124,
};

void weft_front_refuse(struct weft_front *front, int host, const char *format, ...) {
    char text[512];
    va_list arguments;
    if (front->phase == WEFT_FRONT_OVER)
        return;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    weft_remote_hear(
        &front->branch.child[front->host[host].child].remote); /* first what the host has printed */
    fprintf(stderr, "oshrun: cannot start on host %s: %s\n", front->host[host].name, text);
    front->host[host].state = WEFT_HOST_LOST;
    front->status = STATUS_SYSTEM;
    front->phase = WEFT_FRONT_OVER;
}

static void cause_send(struct weft_front *front) {
    struct weft_tree_cause told = weft_tree_cause_make(&front->cause);
    struct weft_frame frame = {.kind = WEFT_TREE_CAUSE, .bytes = sizeof told};
    weft_front_send(front, WEFT_TREE_ALL, frame, &told);
}

static void cause_tell(struct weft_front *front, const char *why) {
    char text[WEFT_CAUSE_TEXT_BYTES];
    weft_cause_text(&front->cause, text, sizeof text);
    if (!front->told)
        fprintf(stderr, "oshrun: %s%s; ending the job\n", text, why);
    front->told = true;
}

/* `why` is appended to the text of a cause that the front found. */
static void end_begin(struct weft_front *front, struct weft_cause cause, int host,
                      const char *why) {
    if (front->phase >= WEFT_FRONT_ENDING)
        return;
    front->cause = cause;
    front->cause_host = host;
    cause_send(front);
    if (host < 0)
        cause_tell(front, why);
    bool nobody = front->phase == WEFT_FRONT_STARTING; /* no PE runs */
    front->phase = nobody ? WEFT_FRONT_OVER : WEFT_FRONT_ENDING;
    front->phase_ends_ms = weft_clock_ms() + ENDING_MS;
}

/* Adds the signal that killed the culprit, which arrives after the notice of the death. */
static void cause_learn(struct weft_front *front, const struct weft_cause *cause) {
    bool more = front->cause.kind == WEFT_ABORT_DIED && cause->kind == WEFT_ABORT_DIED &&
                front->cause.pe == cause->pe && front->cause.detail == 0 && cause->detail != 0;
    front->cause.detail = more ? cause->detail : front->cause.detail;
    if (more)
        cause_send(front);
}

void weft_front_end(struct weft_front *front, struct weft_cause cause, int host) {
    if (front->phase == WEFT_FRONT_ENDING && host == front->cause_host)
        cause_learn(front, &cause);
    else
        end_begin(front, cause, host, "");
}

void weft_front_lose(struct weft_front *front, int first, int count, const char *why) {
    int lost = -1;
    for (int host = first + count - 1; host >= first; host--)
        if (front->host[host].state < WEFT_HOST_DONE)
            lost = host;
    if (lost >= 0 && front->phase == WEFT_FRONT_STARTING) {
        weft_front_refuse(front, lost, "%s", why);
        return;
    }
    for (int host = first; host < first + count; host++)
        if (front->host[host].state < WEFT_HOST_DONE)
            front->host[host].state = WEFT_HOST_LOST;
    if (lost < 0 || front->phase != WEFT_FRONT_RUNNING)
        return;
    char words[320];
    snprintf(words, sizeof words, " (%s)", why);
    end_begin(front, (struct weft_cause){.kind = WEFT_ABORT_HOST, .pe = -1, .detail = lost}, -1,
              words);
}

/* Does the same as weft_end_tell_status, for all hosts. */
static void status_tell(const struct weft_front *front) {
    int failures = 0;
    for (int host = 0; host < front->nhosts; host++)
        failures += front->host[host].done.failures;
    if (front->cause.kind != WEFT_ABORT_NONE || front->first_host < 0 || failures == 0)
        return;
    const struct weft_front_host *first = &front->host[front->first_host];
    char others[64] = "";
    if (failures > 1)
        snprintf(others, sizeof others, "; %d more did not exit with 0", failures - 1);
    fprintf(stderr, "oshrun: PE %d (pid %d on %s) exited with status %d%s\n", first->done.first_pe,
            first->done.first_pid, first->name, first->done.first_status, others);
}

static int cause_status(const struct weft_front *front) {
    int host = front->cause_host;
    if (front->cause.kind == WEFT_ABORT_TIMEOUT)
        return STATUS_TIMEOUT;
    if (front->cause.kind == WEFT_ABORT_LAUNCHER)
        return 128 + (front->cause.detail & 0x7f);
    if (front->cause.kind == WEFT_ABORT_GLOBAL_EXIT)
        return front->cause.detail & 0xff; /* may be 0 */
    if (front->cause.kind == WEFT_ABORT_LEFT && front->cause.detail & 0xff)
        return front->cause.detail & 0xff;
    int status = host >= 0 && front->host[host].state == WEFT_HOST_DONE
                     ? front->host[host].done.status & 0xff
                     : 0;
    return status ? status : WEFT_STATUS_ABORTED;
}

/* Waits until all output is written. After an end by a cause the wait is limited, and a deadly
 * signal such as Ctrl-C ends it, in case the reader of the output does not read. */
static int output_finish(struct weft_front *front, bool ended) {
    int64_t until_ms = weft_clock_ms() + OUTPUT_PATIENCE_MS;
    int error, signal;
    bool left = false, from_terminal;
    while ((error = weft_writer_finish(front->writer, OUTPUT_LOOK_MS)) == -ETIMEDOUT) {
        while (weft_signals_next(&front->signals, &signal, &from_terminal))
            left = left || weft_signal_is_deadly(signal);
        if (left || (ended && weft_clock_ms() > until_ms))
            return 0;
    }
    return error;
}

int weft_front_finish(struct weft_front *front) {
    bool ended = front->cause.kind != WEFT_ABORT_NONE || front->status;
    bool started = !front->branch.listener;
    weft_branch_shut(&front->branch);
    int error = output_finish(front, ended);
    weft_branch_close(&front->branch, started ? PROCESSES_MS : UNSTARTED_MS, started);
    bool lost = front->cause_host >= 0 && front->host[front->cause_host].state != WEFT_HOST_DONE;
    if (lost)
        cause_tell(front, "");
    status_tell(front);
    int status =
        front->first_host < 0 ? 0 : front->host[front->first_host].done.first_status & 0xff;
    if (front->status)
        status = front->status;
    else if (front->cause.kind != WEFT_ABORT_NONE)
        status = cause_status(front);
    return error && status == 0 ? WEFT_STATUS_OUTPUT : status;
}
