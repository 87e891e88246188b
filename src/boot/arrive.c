/* SPDX-License-Identifier: BSD-3-Clause */
/* A PE that comes from another host tries the addresses of PE 0 in turn, until one of them has a
 * listener with the key of the job: PE 0 may be late, and an address of its host may lead to
 * another machine in this one's networks. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weft/version.h>
#include "base/clock.h"
#include "base/env.h"
#include "boot/callers.h"
#include "boot/door.h"
#include "boot/tree.h"

enum { CONNECT_MS = 1000, SHAKE_MS = 5000, AGAIN_MS_MAX = 100 };

struct attempt {
    const struct weft_identity *self;
    struct weft_addresses addresses;
    unsigned char key[WEFT_TLS_KEY_BYTES];
    uint64_t begin_ns;
    uint64_t seen_ns; /* when PE 0's port last took a call; 0: never */
    int refusals;     /* of calls by its host, in this round */
    bool hinted;
    bool refused;  /* in this round somebody did not accept the key */
    char why[256]; /* the last attempt has failed */
};

static void call_fail(struct attempt *call, const char *address, const char *why) {
    snprintf(call->why, sizeof call->why, "%s port %u: %s", address,
             call->self->job_key.invitation.port, why);
}

static int call_shake(struct weft_tls *tls) {
    uint64_t until_ns = weft_clock_ns() + SHAKE_MS * WEFT_NS_PER_MS;
    int error;
    while ((error = weft_tls_shake(tls)) == -EAGAIN && weft_clock_ns() < until_ns) {
        struct pollfd polls = {.fd = weft_tls_socket(tls), .events = weft_tls_events(tls)};
        poll(&polls, 1, WEFT_TREE_BEAT_MS);
    }
    return error == -EAGAIN ? -ETIMEDOUT : error;
}

static int address_call(struct attempt *call, const char *address, struct weft_tls **tls) {
    char identity[16];
    int socket = weft_door_connect(address, call->self->job_key.invitation.port, CONNECT_MS);
    call->refusals += socket == -ECONNREFUSED;
    if (socket < 0) {
        call_fail(call, address, strerror(-socket));
        return -EAGAIN;
    }
    call->seen_ns = weft_clock_ns();
    snprintf(identity, sizeof identity, "%d", call->self->pe);
    int error = weft_tls_connect(tls, socket, identity, call->key);
    if (error)
        return error; /* logged */
    error = call_shake(*tls);
    if (error == 0)
        return 0;
    if (error == -ETIMEDOUT)
        call->seen_ns = weft_clock_ns();
    call->refused = call->refused || error == -EACCES;
    call_fail(call, address, error == -ETIMEDOUT ? strerror(-error) : weft_tls_why(*tls));
    weft_tls_close(*tls);
    return -EAGAIN;
}

static void call_hint(struct attempt *call) {
    uint64_t waited_ms = (weft_clock_ns() - call->begin_ns) / WEFT_NS_PER_MS;
    if (waited_ms < WEFT_MEET_HINT_MS || call->hinted)
        return;
    call->hinted = true;
    weft_note("PE 0 of %d is on another host, and does not answer yet (%s)", call->self->npes,
              call->why);
}

/* Whether PE 0 has ended, or the way to it is cut, which ends the waiting after a round of calls in
 * vain: its port took a call before, and now its host refuses them at every address, or does not
 * answer. A PE 0 that was never reached may be late. */
static bool call_is_lost(struct attempt *call) {
    bool refused = call->refusals == call->addresses.count;
    uint64_t silent_ns = weft_clock_ns() - call->seen_ns;
    call->refusals = 0;
    return call->seen_ns && (refused || (double)silent_ns > weft_env.host_timeout * 1e9);
}

static int call_open(struct attempt *call, struct weft_tls **tls) {
    uint64_t limit_ns = call->begin_ns + WEFT_MEET_LIMIT_MS * WEFT_NS_PER_MS;
    for (long pause_ms = 2;; pause_ms = 2 * pause_ms < AGAIN_MS_MAX ? 2 * pause_ms : AGAIN_MS_MAX) {
        for (int i = 0; i < call->addresses.count; i++) {
            int error = address_call(call, call->addresses.text[i], tls);
            if (error != -EAGAIN)
                return error;
        }
        if (call->refused) {
            weft_log("who listens for PE 0 has another key than this job's (%s)", call->why);
            return -EACCES;
        }
        if (call_is_lost(call)) {
            weft_log("PE 0 of %d on another host is gone before all PEs had come (%s)",
                     call->self->npes, call->why);
            return -ECONNREFUSED;
        }
        call_hint(call);
        if (weft_clock_ns() > limit_ns)
            break;
        weft_clock_sleep_ms(pause_ms);
    }
    weft_log("PE 0 of %d on another host does not answer within %d s (%s)", call->self->npes,
             WEFT_MEET_LIMIT_MS / 1000, call->why);
    return -ETIMEDOUT;
}

static void hello_send(const struct weft_identity *self, struct weft_spoke *spoke) {
    struct weft_arrival_hello hello = {.version = WEFT_VERSION_STRING,
                                       .pe = self->pe,
                                       .npes = self->npes,
                                       .pid = getpid(),
                                       .host = weft_source_host()};
    struct weft_frame frame = {.kind = WEFT_ARRIVAL_HELLO, .bytes = sizeof hello, .pe = self->pe};
    gethostname(hello.name.name, sizeof hello.name.name - 1);
    weft_spoke_send(spoke, &frame, &hello);
}

/* --- The answer ------------------------------------------------------------------------------- */

/* 1: not yet. */
static int answer_hear(const struct weft_identity *self, struct weft_spoke *spoke,
                       struct weft_places *places) {
    struct weft_frame frame;
    const void *payload;
    int error = -EPIPE;
    if (weft_spoke_next(spoke, &frame, &payload)) {
        if (frame.kind == WEFT_ARRIVAL_PLACES)
            error = weft_places_read(places, self, payload, frame.bytes);
        if (frame.kind == WEFT_ARRIVAL_REFUSAL)
            weft_log("%.*s", (int)frame.bytes, (const char *)payload);
        else if (error)
            weft_log("PE 0 on another host does not say where the PEs are: %s", strerror(-error));
    } else if (!spoke->end) {
        return 1;
    } else {
        weft_log(spoke->end == WEFT_SPOKE_SILENT
                     ? "the host of PE 0 does not answer (WEFT_HOST_TIMEOUT)"
                     : "PE 0 has closed the connection before all PEs had come: it is gone, or "
                       "another process is PE %d already",
                 self->pe);
    }
    return error;
}

static int answer_await(const struct weft_identity *self, struct weft_spoke *spoke,
                        struct weft_places *places) {
    int error;
    while ((error = answer_hear(self, spoke, places)) == 1) {
        struct pollfd polls = weft_spoke_poll(spoke);
        poll(&polls, 1, WEFT_TREE_BEAT_MS);
        weft_spoke_turn(spoke, polls.revents);
    }
    return error;
}

bool weft_arrive_refused(struct weft_spoke *spoke, char *why) {
    struct weft_frame frame;
    const void *payload;
    weft_spoke_turn(spoke, POLLIN);
    if (weft_spoke_next(spoke, &frame, &payload)) {
        bool words = frame.kind == WEFT_ARRIVAL_REFUSAL;
        snprintf(why, WEFT_REFUSAL_BYTES, "%.*s", words ? (int)frame.bytes : 0,
                 (const char *)payload);
        if (!words)
            snprintf(why, WEFT_REFUSAL_BYTES, "PE 0 on another host says what makes no sense");
        return true;
    }
    snprintf(why, WEFT_REFUSAL_BYTES, "PE 0 is gone before all PEs had come");
    return spoke->end != WEFT_SPOKE_LIVES;
}

void weft_arrive_say(struct weft_spoke *spoke, enum weft_arrival_kind kind) {
    weft_spoke_send(spoke, &(struct weft_frame){.kind = kind, .pe = -1}, NULL);
}

void weft_arrive_give_up(struct weft_spoke *spoke, const char *why) {
    struct weft_frame frame = {
        .kind = WEFT_ARRIVAL_REFUSAL, .bytes = (uint32_t)strlen(why), .pe = -1};
    weft_spoke_send(spoke, &frame, why);
}

int weft_arrive(const struct weft_identity *self, struct weft_places *places,
                struct weft_spoke *spoke) {
    struct weft_tls *tls = NULL;
    struct attempt call = {.self = self, .begin_ns = weft_clock_ns()};
    *places = (struct weft_places){.nhosts = 0};
    weft_invitation_read(&self->job_key.invitation, &call.addresses);
    int error =
        weft_tls_derive(call.key, self->job_key.secret, WEFT_ARRIVAL_LABEL, (uint32_t)self->pe);
    error = error ? error : call_open(&call, &tls);
    explicit_bzero(call.key, sizeof call.key);
    error = error ? error : weft_spoke_open(spoke, tls);
    if (error)
        return error;
    hello_send(self, spoke);
    error = answer_await(self, spoke, places);
    if (error)
        weft_spoke_close(spoke);
    else
        weft_network_find(&places->network, weft_frames_socket(spoke->frames),
                          weft_invitation_interface());
    return error;
}
