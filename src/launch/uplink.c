/* SPDX-License-Identifier: BSD-3-Clause */
/* Silence is counted in turns of the daemon's own loop, each of which counts for a beat or two at
 * most: a daemon that was stopped itself first reads what has come meanwhile. */
#include "launch/uplink.h"
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/clock.h"
#include "boot/door.h"
#include "boot/hosts.h"

enum {
    CONNECT_MS = 2000,
    SHAKE_MS = 5000,
    CALLS_MAX = 100, /* at one address */
    CALL_AGAIN_MS = 20,
    TURN_MS_MAX = 2 * WEFT_TREE_BEAT_MS,
};

struct weft_uplink {
    struct weft_frames *frames;
    struct weft_network network;
    char address[WEFT_ADDRESS_BYTES];
    const char *lost;
    bool patient; /* with a front that is stopped */
    uint64_t beat_ns, turn_ns, heard_ns;
    uint64_t silence_ns, silence_ns_max;
};

/* --- Connecting ------------------------------------------------------------------------------- */

/* The standard input ends with the front, and has nothing more to read before. */
static int shake(struct weft_tls *tls) {
    uint64_t until_ns = weft_clock_ns() + SHAKE_MS * WEFT_NS_PER_MS;
    int error;
    while ((error = weft_tls_shake(tls)) == -EAGAIN && weft_clock_ns() < until_ns) {
        struct pollfd polls[] = {{.fd = weft_tls_socket(tls), .events = weft_tls_events(tls)},
                                 {.fd = STDIN_FILENO, .events = POLLIN}};
        poll(polls, 2, TURN_MS_MAX);
        if (polls[1].revents)
            return -ECANCELED;
    }
    return error == -EAGAIN ? -ETIMEDOUT : error;
}

static int address_fail(const struct weft_start *start, const char *address, int error,
                        const char *why) {
    fprintf(stderr, "oshrun: host %s cannot reach the launcher at %s port %d: %s\n",
            start->name[start->host], address, start->port, *why ? why : strerror(-error));
    return error;
}

/* One attempt. That it was closed in the handshake is said only if it is the last one. */
static int address_call(const struct weft_start *start, const char *address, bool last,
                        struct weft_tls **tls) {
    char identity[16];
    int socket = weft_door_connect(address, (uint16_t)start->port, CONNECT_MS);
    if (socket < 0)
        return address_fail(start, address, socket, "");
    snprintf(identity, sizeof identity, "%d", start->host);
    int error = weft_tls_connect(tls, socket, identity, start->key);
    if (error)
        return error; /* said */
    error = shake(*tls);
    if (error && (error != -EPIPE || last))
        address_fail(start, address, error, weft_tls_why(*tls));
    if (error)
        weft_tls_close(*tls);
    return error;
}

/* A connection by one address of the front. Who is closed in the handshake had to make room for
 * strangers (boot/door.h), and comes again. */
static int address_try(const struct weft_start *start, const char *address, struct weft_tls **tls) {
    int error = -EPIPE;
    for (int left = CALLS_MAX; error == -EPIPE && left > 0; left--) {
        error = address_call(start, address, left == 1, tls);
        if (error == -EPIPE)
            weft_clock_sleep_ms(CALL_AGAIN_MS);
    }
    return error;
}

static int addresses_try(const struct weft_start *start, struct weft_tls **tls) {
    int error = -ENOENT;
    for (int i = 0; error && i < start->naddresses; i++)
        error = address_try(start, start->address[i], tls);
    return error;
}

int weft_uplink_open(struct weft_uplink **opened, const struct weft_start *start) {
    struct weft_tls *tls = NULL;
    int error = weft_tls_load();
    error = error ? error : addresses_try(start, &tls);
    if (error)
        return error;
    struct weft_uplink *uplink = calloc(1, sizeof *uplink);
    if (!uplink)
        return -ENOMEM; /* the daemon ends, and its connection with it */
    weft_network_find(&uplink->network, weft_tls_socket(tls), NULL);
    weft_address_print(uplink->address, (const struct sockaddr *)&uplink->network.own);
    error = weft_frames_open(&uplink->frames, tls);
    if (error) {
        fprintf(stderr, "oshrun: no memory for a connection\n");
        free(uplink);
        return error;
    }
    uplink->patient = start->by_front;
    uplink->silence_ns_max = (uint64_t)start->silence_ms * WEFT_NS_PER_MS;
    uplink->turn_ns = uplink->beat_ns = weft_clock_ns();
    *opened = uplink;
    return 0;
}

void weft_uplink_close(struct weft_uplink *uplink) {
    weft_frames_close(uplink->frames);
    free(uplink);
}

const struct weft_network *weft_uplink_network(const struct weft_uplink *uplink) {
    return &uplink->network;
}

const char *weft_uplink_address(const struct weft_uplink *uplink) {
    return uplink->address[0] ? uplink->address : NULL;
}

/* --- Speaking --------------------------------------------------------------------------------- */

static void lose(struct weft_uplink *uplink, const char *why) {
    if (!uplink->lost)
        uplink->lost = why;
}

/* What is wrong with the connection; or with us, who have no memory or too much to say. */
static void lose_by(struct weft_uplink *uplink, int error) {
    const char *why = weft_frames_why(uplink->frames);
    lose(uplink, *why ? why : strerror(-error));
}

/* An end of the connection is found by reading, behind what the front has said before it. */
void weft_uplink_send(struct weft_uplink *uplink, const struct weft_frame *frame,
                      const void *payload) {
    int error = uplink->lost ? 0 : weft_frames_send(uplink->frames, frame, payload);
    if (error == -ENOBUFS || error == -ENOMEM || error == -EMSGSIZE)
        lose_by(uplink, error);
}

void weft_uplink_polls(const struct weft_uplink *uplink, struct pollfd polls[WEFT_UPLINK_POLLS]) {
    int socket = uplink->lost ? -1 : weft_frames_socket(uplink->frames);
    polls[0] = (struct pollfd){.fd = socket, .events = weft_frames_events(uplink->frames)};
    polls[1] = (struct pollfd){.fd = uplink->lost ? -1 : STDIN_FILENO, .events = POLLIN};
}

int weft_uplink_patience_ms(const struct weft_uplink *uplink) {
    uint64_t now_ns = weft_clock_ns(),
             due_ns = uplink->beat_ns + WEFT_TREE_BEAT_MS * WEFT_NS_PER_MS;
    return now_ns < due_ns ? (int)((due_ns - now_ns) / WEFT_NS_PER_MS) + 1 : 0;
}

/* Nothing more belongs on the standard input: bytes there are no front's of ours. */
static void stdin_look(struct weft_uplink *uplink) {
    char byte;
    ssize_t count = read(STDIN_FILENO, &byte, 1);
    if (count > 0)
        lose(uplink, "it has sent more than the start text");
    else if (count == 0 || errno != EINTR)
        lose(uplink, "it is gone");
}

void weft_uplink_turn(struct weft_uplink *uplink, const struct pollfd polls[WEFT_UPLINK_POLLS]) {
    uint64_t now_ns = weft_clock_ns(), spent_ns = now_ns - uplink->turn_ns;
    uplink->turn_ns = now_ns;
    uplink->silence_ns +=
        spent_ns < TURN_MS_MAX * WEFT_NS_PER_MS ? spent_ns : TURN_MS_MAX * WEFT_NS_PER_MS;
    if (uplink->lost)
        return;
    if (polls[0].revents)
        weft_frames_serve(uplink->frames,
                          polls[0].revents); /* an error is also what reading finds */
    if (now_ns >= uplink->beat_ns + WEFT_TREE_BEAT_MS * WEFT_NS_PER_MS) {
        uplink->beat_ns = now_ns;
        weft_uplink_send(uplink, &(struct weft_frame){.kind = WEFT_TREE_BEAT}, NULL);
    }
    if (polls[1].revents)
        stdin_look(uplink);
}

/* --- Hearing ---------------------------------------------------------------------------------- */

/* A front that is stopped has a kernel that still gives signs of life. */
static void silence_judge(struct weft_uplink *uplink) {
    uint64_t heard_ns = weft_frames_heard_ns(uplink->frames);
    if (heard_ns != uplink->heard_ns || (uplink->patient && weft_frames_is_alive(uplink->frames)))
        uplink->silence_ns = 0;
    uplink->heard_ns = heard_ns;
    if (uplink->silence_ns > uplink->silence_ns_max)
        lose(uplink, "it does not answer (WEFT_HOST_TIMEOUT)");
}

bool weft_uplink_next(struct weft_uplink *uplink, struct weft_frame *frame, const void **payload) {
    int some = 0;
    while (!uplink->lost && (some = weft_frames_next(uplink->frames, frame, payload)) == 1)
        if (frame->kind != WEFT_TREE_BEAT)
            return true;
    if (some < 0)
        lose_by(uplink, some);
    silence_judge(uplink);
    return false;
}

void weft_uplink_refuse(struct weft_uplink *uplink, const char *why) {
    lose(uplink, why);
}

const char *weft_uplink_lost(const struct weft_uplink *uplink) {
    return uplink->lost;
}
