/* SPDX-License-Identifier: BSD-3-Clause */
/* Silence is the sum of the times between this side's heartbeats, of which each counts for at most
 * two intervals. So after this process was stopped, it first reads what has arrived meanwhile. */
#include "boot/host_link.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "base/clock.h"
#include "boot/tls_listener.h"
#include "boot/tree.h"

enum { SHAKE_MS = 5000 };

#define BEAT_NS (WEFT_TREE_BEAT_MS * WEFT_NS_PER_MS)

/* --- Connecting ------------------------------------------------------------------------------- */

static int call_shake(struct weft_tls *tls, int ends) {
    uint64_t until_ns = weft_clock_ns() + SHAKE_MS * WEFT_NS_PER_MS;
    int error;
    while ((error = weft_tls_shake(tls)) == -EAGAIN && weft_clock_ns() < until_ns) {
        struct pollfd polls[] = {{.fd = weft_tls_socket(tls), .events = weft_tls_events(tls)},
                                 {.fd = ends, .events = POLLIN}};
        poll(polls, 2, WEFT_TREE_BEAT_MS);
        if (polls[1].revents)
            return -ECANCELED;
    }
    return error == -EAGAIN ? -ETIMEDOUT : error;
}

static int call_fail(struct weft_host_call *call, int error, const char *why) {
    snprintf(call->why, sizeof call->why, "%s port %u: %s", call->address, call->port,
             *why ? why : strerror(-error));
    return error;
}

int weft_host_link_call(struct weft_tls **tls, struct weft_host_call *call) {
    char identity[16];
    call->why[0] = '\0';
    int socket = weft_tls_listener_connect(call->address, call->port, call->connect_ms);
    call->taken = socket >= 0;
    if (socket < 0)
        return call_fail(call, socket, "");
    snprintf(identity, sizeof identity, "%d", call->number);
    int error = weft_tls_connect(tls, socket, identity, call->key);
    if (error)
        return error; /* logged */
    error = call_shake(*tls, call->ends);
    if (error == 0)
        return 0;
    call_fail(call, error, weft_tls_why(*tls));
    weft_tls_close(*tls);
    return error;
}

/* --- A link ----------------------------------------------------------------------------------- */

int weft_host_link_open(struct weft_host_link *link, struct weft_tls *tls, double silence_s,
                        bool patient) {
    *link = (struct weft_host_link){.patient = patient,
                                    .silence_ns_max = (uint64_t)(silence_s * 1e9),
                                    .beat_ns = weft_clock_ns()};
    link->heard_ns = link->beat_ns;
    return weft_frames_open(&link->frames, tls);
}

void weft_host_link_close(struct weft_host_link *link) {
    weft_frames_close(link->frames);
    *link = (struct weft_host_link){.end = WEFT_HOST_LINK_CLOSED};
}

static void link_lose(struct weft_host_link *link, enum weft_host_link_end end, const char *why) {
    if (link->end != WEFT_HOST_LINK_LIVES)
        return;
    link->end = end;
    link->why = why;
}

/* A frame that cannot be queued ends the link here. Other failures are detected by
 * weft_host_link_next. */
void weft_host_link_send(struct weft_host_link *link, const struct weft_frame *frame,
                         const void *payload) {
    if (!link->frames || link->end == WEFT_HOST_LINK_CLOSED)
        return;
    int error = weft_frames_send(link->frames, frame, payload);
    if (error == -ENOBUFS || error == -ENOMEM || error == -EMSGSIZE)
        link_lose(link, WEFT_HOST_LINK_WRONG, weft_frames_why(link->frames));
}

struct pollfd weft_host_link_poll(const struct weft_host_link *link) {
    if (!link->frames || link->end)
        return (struct pollfd){.fd = -1};
    return (struct pollfd){.fd = weft_frames_socket(link->frames),
                           .events = weft_frames_events(link->frames)};
}

static void silence_judge(struct weft_host_link *link, uint64_t spent_ns, uint64_t now_ns) {
    if (weft_frames_is_alive(link->frames, link->patient)) {
        link->heard_ns = now_ns;
        link->silence_ns = 0;
        return;
    }
    link->silence_ns += spent_ns < 2 * BEAT_NS ? spent_ns : 2 * BEAT_NS;
    if (link->silence_ns > link->silence_ns_max)
        link_lose(link, WEFT_HOST_LINK_SILENT, "it does not answer (WEFT_HOST_TIMEOUT)");
}

void weft_host_link_turn(struct weft_host_link *link, short revents) {
    uint64_t now_ns = weft_clock_ns(), spent_ns = now_ns - link->beat_ns;
    if (!link->frames || link->end)
        return;
    if (revents)
        weft_frames_serve(link->frames, revents); /* weft_host_link_next detects an error, too */
    if (spent_ns < BEAT_NS)
        return;
    link->beat_ns = now_ns;
    weft_host_link_send(link, &(struct weft_frame){.kind = WEFT_TREE_BEAT, .pe = -1}, NULL);
    silence_judge(link, spent_ns, now_ns);
}

bool weft_host_link_next(struct weft_host_link *link, struct weft_frame *frame,
                         const void **payload) {
    int some = 0;
    while (link->frames && !link->end &&
           (some = weft_frames_next(link->frames, frame, payload)) == 1)
        if (frame->kind != WEFT_TREE_BEAT)
            return true;
    if (some < 0)
        link_lose(link, some == -EPIPE ? WEFT_HOST_LINK_CLOSED : WEFT_HOST_LINK_WRONG,
                  weft_frames_why(link->frames));
    return false;
}

void weft_host_link_refuse(struct weft_host_link *link, const char *why) {
    link_lose(link, WEFT_HOST_LINK_WRONG, why);
}

bool weft_host_link_is_flushed(const struct weft_host_link *link) {
    return !link->frames || link->end || weft_frames_queued(link->frames) == 0;
}
