/* SPDX-License-Identifier: BSD-3-Clause */
/* Handles frames from daemons. A frame that a correct daemon does not send marks its host as lost:
 * the daemon is broken or of another version. */
#include <stdio.h>
#include <string.h>
#include <weft/version.h>
#include "base/clock.h"
#include "base/log.h"
#include "launch/front.h"

static void all_answered(struct weft_front *front) {
    weft_branch_shut(&front->branch);
    front->phase = WEFT_FRONT_RUNNING;
    front->phase_ends_ms = 0;
    weft_front_send(front, WEFT_TREE_ALL, (struct weft_frame){.kind = WEFT_TREE_GO}, NULL);
}

static bool frame_fits(const struct weft_frame *frame, size_t bytes) {
    return frame->bytes == bytes;
}

static bool pe_is_of(const struct weft_front *front, int host, int pe) {
    return pe >= 0 && pe < front->npes && front->host_of[pe] == host;
}

static bool hello_hear(struct weft_front *front, int host, const struct weft_frame *frame,
                       const void *payload) {
    struct weft_tree_hello hello;
    if (!frame_fits(frame, sizeof hello))
        return false;
    memcpy(&hello, payload, sizeof hello);
    if (hello.cores < 1)
        return false;
    hello.version[sizeof hello.version - 1] = '\0';
    bool ours = hello.layout == WEFT_TREE_LAYOUT && !strcmp(hello.version, WEFT_VERSION_STRING);
    if (!ours)
        weft_front_refuse(front, host, "it has Weft %s, and this is Weft %s", hello.version,
                          WEFT_VERSION_STRING);
    else if (front->options->no_more_than_processors && hello.cores < front->host[host].npes)
        weft_front_refuse(front, host, "its %d PEs are more than its %d processors",
                          front->host[host].npes, hello.cores);
    if (front->phase != WEFT_FRONT_STARTING)
        return true;
    front->host[host].state = WEFT_HOST_ANSWERED;
    for (int each = 0; each < front->nhosts; each++)
        if (front->host[each].state != WEFT_HOST_ANSWERED)
            return true;
    all_answered(front);
    return true;
}

/* Ends the job if an exchange waits for a PE of a host that is done. The daemon there could not
 * know that another PE would wait. */
static void exchanges_judge(struct weft_front *front) {
    weft_host_exchanges_judge(&front->exchanges, front->control);
    for (int host = 0; host < front->nhosts; host++) {
        const struct weft_front_host *it = &front->host[host];
        if (it->state != WEFT_HOST_DONE || !weft_host_exchanges_await(&front->exchanges, host))
            continue;
        const struct weft_control_pe *pe = &front->control->pe[it->first_pe];
        weft_front_end(front,
                       (struct weft_cause){.kind = WEFT_ABORT_EXITED,
                                           .pe = it->first_pe,
                                           .pid = atomic_load(&pe->pid),
                                           .detail = it->done.first_status,
                                           .state = (enum weft_pe_state)atomic_load(&pe->state)},
                       -1);
        return;
    }
}

void weft_front_share(void *owner, int host, const void *payload, size_t bytes) {
    struct weft_frame frame = {.kind = WEFT_TREE_SHARED, .bytes = (uint32_t)bytes};
    weft_front_send(owner, host, frame, payload);
}

static bool gave_hear(struct weft_front *front, int host, const struct weft_frame *frame,
                      const void *payload) {
    int error = weft_host_exchanges_give(&front->exchanges, host, payload, frame->bytes);
    if (error == 0)
        exchanges_judge(front);
    return error == 0;
}

/* Records a PE's state or long wait and sends it to the other hosts, whose PEs may wait for this
 * PE. */
static bool pe_status_hear(struct weft_front *front, int host, const struct weft_frame *frame,
                           const void *payload) {
    if (weft_pe_status_hear(front->pe_status, host, frame, payload))
        return false;
    weft_front_send(front, WEFT_TREE_ALL_BUT(host), *frame, payload);
    weft_host_exchanges_judge(&front->exchanges, front->control);
    return true;
}

static bool output_hear(struct weft_front *front, int host, const struct weft_frame *frame,
                        const void *payload) {
    struct weft_front_host *it = &front->host[host];
    bool right = pe_is_of(front, host, frame->pe) && (frame->value == 1 || frame->value == 2) &&
                 frame->bytes <= WEFT_TREE_PIECE_MAX &&
                 it->untaken + (int32_t)frame->bytes <= WEFT_TREE_OUTPUT_MAX + WEFT_TREE_PIECE_MAX;
    if (!right)
        return false;
    it->untaken += (int32_t)frame->bytes;
    return weft_writer_give(front->writer, frame->pe, frame->value, payload, frame->bytes) == 0;
}

static bool taken_hear(struct weft_front *front, int host, const struct weft_frame *frame) {
    if (host != front->host_of[0] || frame->value < 0 || frame->value > front->input_untaken)
        return false;
    front->input_untaken -= frame->value;
    return true;
}

/* A PE cannot reach another host. If that host's heartbeats have stopped, too, nothing is done
 * here: either the host is lost by its silence or it returns, and a PE that still cannot reach it
 * reports that again. */
static bool cut_hear(struct weft_front *front, int from, struct weft_cause cause) {
    if (cause.detail == from)
        return false;
    const struct weft_front_host *other = &front->host[cause.detail];
    const struct weft_frames *frames = front->branch.child[other->child].link.frames;
    if (frames && other->state != WEFT_HOST_LOST &&
        weft_clock_ns() - weft_frames_heard_ns(frames) < WEFT_TREE_LIVES_MS * WEFT_NS_PER_MS)
        weft_front_end(front, cause, -1);
    return true;
}

/* Returns whether this host's daemon can know the cause: how its own PEs end, that a PE has left
 * the job, that the daemon was signaled. */
static bool cause_is_of(const struct weft_front *front, int host, const struct weft_cause *cause) {
    switch (cause->kind) {
    case WEFT_ABORT_DIED:
    case WEFT_ABORT_EXITED:
    case WEFT_ABORT_GLOBAL_EXIT:
    case WEFT_ABORT_ERROR:
    case WEFT_ABORT_EXECED:
    case WEFT_ABORT_CUT:
        return pe_is_of(front, host, cause->pe);
    default:
        return cause->kind == WEFT_ABORT_LEFT || cause->kind == WEFT_ABORT_LAUNCHER;
    }
}

static bool cause_hear(struct weft_front *front, int host, const struct weft_frame *frame,
                       const void *payload) {
    struct weft_cause cause;
    if (!weft_tree_cause_read(&cause, payload, frame->bytes, front->npes, front->nhosts) ||
        !cause_is_of(front, host, &cause))
        return false;
    if (cause.kind == WEFT_ABORT_CUT)
        return cut_hear(front, host, cause);
    bool of_others = front->host_of[cause.pe < 0 ? 0 : cause.pe] !=
                     host; /* the daemon there does not write the line */
    weft_front_end(front, cause, cause.kind == WEFT_ABORT_LEFT && of_others ? -1 : host);
    return true;
}

static bool host_is_other(const struct weft_front *front, int host, const char *name) {
    for (int other = 0; other < front->nhosts; other++)
        if (other != host && strcmp(front->name[other], name) == 0)
            return true;
    return false;
}

/* Returns whether the line can be printed unchanged: it begins as oshrun's do and names no other
 * host, as in "on b" or "host b". */
static bool line_is_own(const struct weft_front *front, int host, const char *line) {
    char text[WEFT_TREE_LINE_MAX + 1], *rest = text, *word;
    bool own = strncmp(line, "oshrun: ", 8) == 0, named = false;
    snprintf(text, sizeof text, "%s", line);
    while (own && (word = strsep(&rest, " ,:;()'\""))) {
        own = !named || !host_is_other(front, host, word);
        named = strcmp(word, "on") == 0 || strcmp(word, "host") == 0;
    }
    return own;
}

static void line_write(const struct weft_front *front, int host, const void *bytes, size_t count) {
    char text[WEFT_TREE_LINE_MAX + 1];
    memcpy(text, bytes, count);
    text[count] = '\0';
    weft_log_make_printable(text, count + 1);
    if (line_is_own(front, host, text))
        fprintf(stderr, "%s\n", text);
    else
        fprintf(stderr, "oshrun: %s: %s\n", front->name[host], text);
}

/* Prints a line from a host. A line about a cause that was not accepted is dropped, because it
 * would name the wrong culprit. */
static bool line_hear(struct weft_front *front, int host, const struct weft_frame *frame,
                      const void *payload) {
    if (frame->bytes == 0 || frame->bytes > WEFT_TREE_LINE_MAX)
        return false;
    bool wanted = frame->value != 1 || front->cause_host == host;
    front->told = front->told || (wanted && frame->value == 1);
    if (wanted)
        line_write(front, host, payload, frame->bytes);
    return true;
}

static bool done_hear(struct weft_front *front, int host, const struct weft_frame *frame,
                      const void *payload) {
    struct weft_front_host *it = &front->host[host];
    struct weft_tree_done done;
    if (!frame_fits(frame, sizeof done))
        return false;
    memcpy(&done, payload, sizeof done);
    if (!weft_tree_done_is_sound(&done, it->npes) ||
        (done.first_status && !pe_is_of(front, host, done.first_pe)))
        return false;
    it->done = done;
    it->state = WEFT_HOST_DONE;
    if (it->done.first_status && front->first_host < 0)
        front->first_host = host;
    weft_front_send(front, host, (struct weft_frame){.kind = WEFT_TREE_BYE}, NULL);
    exchanges_judge(front);
    return true;
}

static enum weft_tree_phase phase_of(const struct weft_front *front, int host) {
    if (front->host[host].state == WEFT_HOST_STARTED)
        return WEFT_TREE_BEFORE_HELLO;
    if (front->host[host].state != WEFT_HOST_ANSWERED)
        return WEFT_TREE_AFTER_DONE;
    return front->phase == WEFT_FRONT_STARTING ? WEFT_TREE_BEFORE_GO : WEFT_TREE_AT_WORK;
}

/* Returns false if a correct daemon does not send this frame now. After the end of the job frames
 * are ignored. */
static bool frame_hear(struct weft_front *front, int host, const struct weft_frame *frame,
                       const void *payload) {
    if (front->phase == WEFT_FRONT_OVER)
        return true;
    if (!weft_tree_may_rise(frame->kind, phase_of(front, host)))
        return false;
    switch (frame->kind) {
    case WEFT_TREE_HELLO:
        return hello_hear(front, host, frame, payload);
    case WEFT_TREE_GAVE:
        return gave_hear(front, host, frame, payload);
    case WEFT_TREE_PE_STATUS:
    case WEFT_TREE_LONG_WAIT:
        return pe_status_hear(front, host, frame, payload);
    case WEFT_TREE_OUTPUT:
        return output_hear(front, host, frame, payload);
    case WEFT_TREE_TAKEN:
        return taken_hear(front, host, frame);
    case WEFT_TREE_CAUSE:
        return cause_hear(front, host, frame, payload);
    case WEFT_TREE_LINE:
        return line_hear(front, host, frame, payload);
    case WEFT_TREE_DONE:
        return done_hear(front, host, frame, payload);
    default:
        return false;
    }
}

/* A relay has reported lost hosts. */
static void lost_hear(struct weft_front *front, const struct weft_frame *frame,
                      const void *payload) {
    char why[256];
    snprintf(why, sizeof why, "%.*s", (int)frame->bytes, (const char *)payload);
    weft_log_make_printable(why, sizeof why);
    weft_front_lose(front, frame->host, frame->value, why);
}

static bool child_hear(void *owner, int child, const struct weft_frame *frame,
                       const void *payload) {
    struct weft_front *front = owner;
    (void)child;
    if (frame->kind != WEFT_TREE_LOST)
        return frame_hear(front, frame->host, frame, payload);
    lost_hear(front, frame, payload);
    return true;
}

static void child_lose(void *owner, int child, const char *why) {
    struct weft_front *front = owner;
    const struct weft_branch_child *it = &front->branch.child[child];
    weft_front_lose(front, it->first, it->count, why);
}

const struct weft_branch_above weft_front_above = {child_hear, child_lose};
