/* SPDX-License-Identifier: BSD-3-Clause */
/* PEs send at once, so most connections are read when they are accepted, and never enter `silent`.
 */
#include "boot/listener.h"
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/log.h"
#include "base/machine.h"
#include "boot/rendezvous.h"

enum { CONNECTIONS_A_TURN = 64, SILENT_MS_MAX = 1000, REST_MS_MIN = 10, REST_MS_MAX = 200 };

int weft_listener_open(struct weft_listener *listener, int listening, weft_listener_hear *hear,
                       void *owner) {
    *listener = (struct weft_listener){.hear = hear, .owner = owner, .listening = listening};
    return listening < 0 ? listening : 0;
}

void weft_listener_close(struct weft_listener *listener) {
    for (int i = 0; i < listener->nsilent; i++)
        close(listener->silent[i].socket);
    if (listener->listening >= 0)
        close(listener->listening);
    *listener = (struct weft_listener){.listening = -1};
}

/* Returns the milliseconds until then, rounded up, at most `limit_ms`. */
static int poll_limit_ms(uint64_t then_ns, int limit_ms) {
    uint64_t now_ns = weft_clock_ns();
    uint64_t left_ms = then_ns > now_ns ? (then_ns - now_ns) / WEFT_NS_PER_MS + 1 : 0;
    return left_ms < (uint64_t)limit_ms ? (int)left_ms : limit_ms;
}

/* poll(2) fails for more entries than the process may have descriptors. */
void weft_listener_poll(const struct weft_listener *listener, struct pollfd *polls, nfds_t count,
                        int limit_ms) {
    bool rests = listener->rest_ms && poll_limit_ms(listener->rests_until_ns, REST_MS_MAX) > 0;
    polls[count++] = (struct pollfd){.fd = rests ? -1 : listener->listening, .events = POLLIN};
    for (int i = 0; i < listener->nsilent; i++)
        polls[count++] = (struct pollfd){.fd = listener->silent[i].socket, .events = POLLIN};
    if (rests)
        limit_ms = poll_limit_ms(listener->rests_until_ns, limit_ms);
    if (listener->nsilent)
        limit_ms =
            poll_limit_ms(listener->silent[0].since_ns + SILENT_MS_MAX * WEFT_NS_PER_MS, limit_ms);
    int ready = poll(polls, count, limit_ms);
    if (ready < 0 && errno != EINTR)
        weft_clock_sleep_ms(REST_MS_MIN);
    for (nfds_t i = 0; ready <= 0 && i < count; i++)
        polls[i].revents = 0;
}

/* Closes the oldest silent connection. Shuts the socket first and reads once more, so that no
 * message of the peer is lost. */
static void peer_dismiss_oldest(struct weft_listener *listener) {
    const struct weft_connection *peer = &listener->silent[0];
    shutdown(peer->socket, SHUT_RD);
    if (!listener->hear(listener->owner, peer->socket, peer->pid))
        close(peer->socket);
    memmove(listener->silent, listener->silent + 1,
            (size_t)--listener->nsilent * sizeof *listener->silent);
}

static void silent_hear(struct weft_listener *listener, const struct pollfd *polls) {
    int kept = 0;
    for (int i = 0; i < listener->nsilent; i++) {
        struct weft_connection peer = listener->silent[i];
        if (!polls[1 + i].revents || !listener->hear(listener->owner, peer.socket, peer.pid))
            listener->silent[kept++] = peer;
    }
    listener->nsilent = kept;
    while (listener->nsilent &&
           weft_clock_ns() - listener->silent[0].since_ns > SILENT_MS_MAX * WEFT_NS_PER_MS)
        peer_dismiss_oldest(listener);
}

/* Accepts nothing for a while, because descriptors or memory have run out, and closes the silent
 * connections, to free what they hold. */
static void listener_rest(struct weft_listener *listener, int code) {
    if (!listener->logged)
        weft_log("cannot let another PE in (accept4): %s%s; trying again until it works",
                 strerror(-code), weft_remedy(code).text);
    listener->logged = true;
    while (listener->nsilent)
        peer_dismiss_oldest(listener);
    weft_machine_raise_descriptors();
    long longer_ms = listener->rest_ms ? 2 * listener->rest_ms : REST_MS_MIN;
    listener->rest_ms = longer_ms < REST_MS_MAX ? longer_ms : REST_MS_MAX;
    listener->rests_until_ns = weft_clock_ns() + (uint64_t)listener->rest_ms * WEFT_NS_PER_MS;
}

static void peer_take_in(struct weft_listener *listener, const struct weft_connection *peer) {
    listener->rest_ms = 0;
    if (listener->hear(listener->owner, peer->socket, peer->pid))
        return;
    if (listener->nsilent == WEFT_LISTENER_SILENT_MAX)
        peer_dismiss_oldest(listener);
    listener->silent[listener->nsilent++] = *peer;
}

static void peer_let_in(struct weft_listener *listener) {
    for (int come = 0; come < CONNECTIONS_A_TURN; come++) {
        struct weft_connection peer = {.since_ns = weft_clock_ns()};
        peer.socket = weft_rendezvous_accept(listener->listening, &peer.pid);
        if (peer.socket == -EAGAIN)
            return;
        if (peer.socket >= 0) {
            peer_take_in(listener, &peer);
        } else if (peer.socket != -EACCES) {
            listener_rest(listener, peer.socket);
            return;
        }
    }
}

void weft_listener_turn(struct weft_listener *listener, const struct pollfd *polls) {
    silent_hear(listener, polls);
    if (polls[0].revents)
        peer_let_in(listener);
}
