/* SPDX-License-Identifier: BSD-3-Clause */
/* A PE of another host tries the addresses of PE 0 in turn, until a listener at one of them has the
 * key of the job: PE 0 may be late, and in the networks of this host an address of PE 0's host may
 * be that of another machine. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weft/version.h>
#include "base/clock.h"
#include "base/env.h"
#include "base/machine.h"
#include "boot/callers.h"
#include "boot/tls_listener.h"
#include "boot/tree.h"

enum { CONNECT_MS = 1000, AGAIN_MS_MAX = 100 };

struct attempt {
    const struct weft_identity *self;
    struct weft_addresses addresses;
    unsigned char key[WEFT_TLS_KEY_BYTES];
    struct weft_host_call call; /* the last one */
    uint64_t begin_ns;
    uint64_t seen_ns; /* when PE 0's port last accepted a connection; 0: never */
    int refusals;     /* connections that PE 0's host has refused in this round */
    bool hinted;
    bool refused; /* in this round a listener did not accept the key */
};

/* Returns 0; -EAGAIN: try again later; or another -errno, logged. */
static int address_call(struct attempt *attempt, const char *address, struct weft_tls **tls) {
    attempt->call = (struct weft_host_call){.address = address,
                                            .port = attempt->self->job_key.invitation.port,
                                            .connect_ms = CONNECT_MS,
                                            .number = attempt->self->pe,
                                            .key = attempt->key,
                                            .ends = -1};
    int error = weft_host_link_call(tls, &attempt->call);
    attempt->refusals += error == -ECONNREFUSED;
    attempt->refused = attempt->refused || error == -EACCES;
    if (attempt->call.taken)
        attempt->seen_ns = weft_clock_ns();
    return error && attempt->call.why[0] ? -EAGAIN : error;
}

static void call_hint(struct attempt *attempt) {
    uint64_t waited_ms = (weft_clock_ns() - attempt->begin_ns) / WEFT_NS_PER_MS;
    if (waited_ms < WEFT_MEET_HINT_MS || attempt->hinted)
        return;
    attempt->hinted = true;
    weft_note("PE 0 of %d is on another host, and does not answer yet (%s)", attempt->self->npes,
              attempt->call.why);
}

/* Called after a round in which no address has answered. Returns whether PE 0 has ended, or its
 * host is cut off: its port had accepted a connection before, and now its host refuses them at
 * every address, or does not answer. If PE 0 was never reached it may be late. */
static bool call_is_lost(struct attempt *attempt) {
    bool refused = attempt->refusals == attempt->addresses.count;
    uint64_t silent_ns = weft_clock_ns() - attempt->seen_ns;
    attempt->refusals = 0;
    return attempt->seen_ns && (refused || (double)silent_ns > weft_env.host_timeout * 1e9);
}

static int call_open(struct attempt *attempt, struct weft_tls **tls) {
    uint64_t limit_ns = attempt->begin_ns + WEFT_MEET_LIMIT_MS * WEFT_NS_PER_MS;
    for (long pause_ms = 2;; pause_ms = 2 * pause_ms < AGAIN_MS_MAX ? 2 * pause_ms : AGAIN_MS_MAX) {
        for (int i = 0; i < attempt->addresses.count; i++) {
            int error = address_call(attempt, attempt->addresses.text[i], tls);
            if (error != -EAGAIN)
                return error;
        }
        if (attempt->refused) {
            weft_log("the listener at PE 0's address does not have the key of this job (%s)",
                     attempt->call.why);
            return -EACCES;
        }
        if (call_is_lost(attempt)) {
            weft_log("PE 0 of %d on another host is gone before all PEs had arrived (%s)",
                     attempt->self->npes, attempt->call.why);
            return -ECONNREFUSED;
        }
        call_hint(attempt);
        if (weft_clock_ns() > limit_ns)
            break;
        weft_clock_sleep_ms(pause_ms);
    }
    weft_log("PE 0 of %d on another host does not answer within %d s (%s)", attempt->self->npes,
             WEFT_MEET_LIMIT_MS / 1000, attempt->call.why);
    return -ETIMEDOUT;
}

static void hello_send(const struct weft_identity *self, struct weft_host_link *link) {
    struct weft_arrival_hello hello = {.version = WEFT_VERSION_STRING,
                                       .pe = self->pe,
                                       .npes = self->npes,
                                       .pid = getpid(),
                                       .host = weft_source_host()};
    struct weft_frame frame = {.kind = WEFT_ARRIVAL_HELLO, .bytes = sizeof hello, .pe = self->pe};
    gethostname(hello.name.name, sizeof hello.name.name - 1);
    weft_host_link_send(link, &frame, &hello);
}

/* --- Places ----------------------------------------------------------------------------------- */

/* Returns whether PE 0 is on host 0 and this PE is not, and hosts are numbered in the order of
 * their first PEs. */
static bool places_make_sense(const struct weft_places *places, const struct weft_identity *self) {
    bool sensible = places->host_of[0] == 0 && places->here != 0;
    int seen = 0;
    for (int pe = 0; sensible && pe < self->npes; pe++) {
        sensible = places->host_of[pe] >= 0 && places->host_of[pe] <= seen;
        seen += places->host_of[pe] == seen;
    }
    return sensible && seen == places->nhosts;
}

int weft_places_read(struct weft_places *places, const struct weft_identity *self,
                     const unsigned char *payload, size_t bytes) {
    int32_t nhosts = 0;
    size_t numbers = (size_t)self->npes * sizeof *places->host_of;
    if (bytes >= sizeof nhosts)
        memcpy(&nhosts, payload, sizeof nhosts);
    size_t names = (size_t)nhosts * sizeof *places->host;
    if (nhosts < 2 || nhosts > self->npes || bytes != sizeof nhosts + names + numbers)
        return -EPROTO;
    places->host = malloc(names);
    places->host_of = malloc(numbers);
    if (!places->host || !places->host_of)
        return -ENOMEM;
    memcpy(places->host, payload + sizeof nhosts, names);
    memcpy(places->host_of, payload + sizeof nhosts + names, numbers);
    places->nhosts = nhosts;
    places->here = places->host_of[self->pe];
    for (int host = 0; host < nhosts; host++)
        places->host[host].name[sizeof places->host[host].name - 1] = '\0';
    return places_make_sense(places, self) ? 0 : -EPROTO;
}

void weft_places_free(struct weft_places *places) {
    free(places->host);
    free(places->host_of);
    places->host = NULL;
    places->host_of = NULL;
}

int weft_places_first(const struct weft_places *places, int host) {
    int pe = 0;
    while (places->host_of && places->host_of[pe] != host)
        pe++;
    return pe;
}

/* --- The answer ------------------------------------------------------------------------------- */

/* Returns 0, -errno (logged), or 1: the answer has not come yet. */
static int answer_hear(const struct weft_identity *self, struct weft_host_link *link,
                       struct weft_places *places) {
    struct weft_frame frame;
    const void *payload;
    int error = -EPIPE;
    if (weft_host_link_next(link, &frame, &payload)) {
        if (frame.kind == WEFT_ARRIVAL_PLACES)
            error = weft_places_read(places, self, payload, frame.bytes);
        if (frame.kind == WEFT_ARRIVAL_REFUSAL)
            weft_log("%.*s", (int)frame.bytes, (const char *)payload);
        else if (error)
            weft_log("PE 0 on another host has sent no valid list of hosts: %s%s", strerror(-error),
                     weft_remedy(error).text);
    } else if (!link->end) {
        return 1;
    } else {
        weft_log(link->end == WEFT_HOST_LINK_SILENT
                     ? "the host of PE 0 does not answer (WEFT_HOST_TIMEOUT)"
                     : "PE 0 has closed the connection before all PEs had arrived: it is gone, "
                       "or another process is PE %d already",
                 self->pe);
    }
    return error;
}

static int answer_await(const struct weft_identity *self, struct weft_host_link *link,
                        struct weft_places *places) {
    int error;
    while ((error = answer_hear(self, link, places)) == 1) {
        struct pollfd polls = weft_host_link_poll(link);
        poll(&polls, 1, WEFT_TREE_BEAT_MS);
        weft_host_link_turn(link, polls.revents);
    }
    return error;
}

bool weft_arrive_refused(struct weft_host_link *link, char *why) {
    struct weft_frame frame;
    const void *payload;
    weft_host_link_turn(link, POLLIN);
    if (weft_host_link_next(link, &frame, &payload)) {
        bool words = frame.kind == WEFT_ARRIVAL_REFUSAL;
        snprintf(why, WEFT_REFUSAL_BYTES, "%.*s", words ? (int)frame.bytes : 0,
                 (const char *)payload);
        if (!words)
            snprintf(why, WEFT_REFUSAL_BYTES, "PE 0 on another host has sent an invalid frame");
        return true;
    }
    snprintf(why, WEFT_REFUSAL_BYTES, "PE 0 is gone before all PEs had arrived");
    return link->end != WEFT_HOST_LINK_LIVES;
}

void weft_arrive_say(struct weft_host_link *link, enum weft_arrival_kind kind) {
    weft_host_link_send(link, &(struct weft_frame){.kind = kind, .pe = -1}, NULL);
}

void weft_arrive_give_up(struct weft_host_link *link, const char *why) {
    struct weft_frame frame = {
        .kind = WEFT_ARRIVAL_REFUSAL, .bytes = (uint32_t)strlen(why), .pe = -1};
    weft_host_link_send(link, &frame, why);
}

int weft_arrive(const struct weft_identity *self, struct weft_places *places,
                struct weft_host_link *link) {
    struct weft_tls *tls = NULL;
    struct attempt attempt = {.self = self, .begin_ns = weft_clock_ns()};
    *places = (struct weft_places){.nhosts = 0};
    weft_invitation_read(&self->job_key.invitation, &attempt.addresses);
    int error =
        weft_tls_derive(attempt.key, self->job_key.secret, WEFT_ARRIVAL_LABEL, (uint32_t)self->pe);
    error = error ? error : call_open(&attempt, &tls);
    explicit_bzero(attempt.key, sizeof attempt.key);
    if (error)
        return error;
    error = weft_host_link_open(link, tls, weft_env.host_timeout, true);
    if (error) {
        weft_log("there is no memory for a connection to another host");
        return error;
    }
    hello_send(self, link);
    error = answer_await(self, link, places);
    if (error)
        weft_host_link_close(link);
    else
        weft_network_find(&places->network, weft_frames_socket(link->frames),
                          weft_invitation_interface());
    return error;
}
