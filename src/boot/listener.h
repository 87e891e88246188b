/* SPDX-License-Identifier: BSD-3-Clause */
/* A listening socket for the PEs of this host, and its connections that have sent nothing yet. Any
 * process of the host, also of other users, may connect as fast as it can: a turn accepts a bounded
 * number, so that accepted connections are read in every turn. A silent connection is closed after
 * a while, and sooner if its place is needed; a PE whose socket is closed before it has sent its
 * message connects again. */
#ifndef WEFT_BOOT_LISTENER_H
#define WEFT_BOOT_LISTENER_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { WEFT_LISTENER_SILENT_MAX = 64, WEFT_LISTENER_POLLS = 1 + WEFT_LISTENER_SILENT_MAX };

struct weft_connection {
    int socket;
    pid_t pid;
    uint64_t since_ns;
};

/* Reads the message of a peer, without blocking. Returns false if there is none yet; otherwise the
 * socket belongs to this function. */
typedef bool weft_listener_hear(void *owner, int socket, pid_t pid);

struct weft_listener {
    weft_listener_hear *hear;
    void *owner;
    int listening, nsilent;
    struct weft_connection silent[WEFT_LISTENER_SILENT_MAX]; /* the oldest first */
    uint64_t rests_until_ns; /* accepts nothing until then: descriptors ran out */
    long rest_ms;
    bool logged;
};

/* Takes over the socket `listening`. If that is -errno, returns it; otherwise 0. */
int weft_listener_open(struct weft_listener *listener, int listening, weft_listener_hear *hear,
                       void *owner);
void weft_listener_close(struct weft_listener *listener);

/* Blocks until somebody connects or sends, one of the caller's descriptors is ready, the listener
 * has to close a silent connection or may accept again, or `limit_ms` have passed. The first
 * `count` entries of `polls` are the caller's, filled in; the WEFT_LISTENER_POLLS entries after
 * them are the listener's. */
void weft_listener_poll(const struct weft_listener *listener, struct pollfd *polls, nfds_t count,
                        int limit_ms);

/* Reads from connections that have sent, accepts new ones, and closes those that were silent for
 * too long. `polls` are the listener's entries. */
void weft_listener_turn(struct weft_listener *listener, const struct pollfd *polls);

#endif
