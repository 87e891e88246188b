/* SPDX-License-Identifier: BSD-3-Clause */
/* A listening socket, and the connections that it has accepted and that have sent nothing yet.
 * Anybody may connect, also other users, as fast as they can: a turn accepts a bounded number, so
 * that those that are in already are heard in every turn. A silent connection is closed after a
 * while, and sooner if its place is needed; a peer that this hits finds its socket closed before it
 * has sent a word, and connects again. */
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

/* Hears what a peer says, without waiting. False: nothing yet. Otherwise the socket is the
 * hearer's to keep or to close. */
typedef bool weft_listener_hear(void *owner, int socket, pid_t pid);

struct weft_listener {
    weft_listener_hear *hear;
    void *owner;
    int listening, nsilent;
    struct weft_connection silent[WEFT_LISTENER_SILENT_MAX]; /* the oldest first */
    uint64_t rests_until_ns; /* looks at no new connection: there were no descriptors for it */
    long rest_ms;
    bool logged;
};

/* The listening socket, or -errno of opening it, which is returned; it is the listener's from here
 * on. */
int weft_listener_open(struct weft_listener *listener, int listening, weft_listener_hear *hear,
                       void *owner);
void weft_listener_close(struct weft_listener *listener);

/* Sleeps until somebody connects or sends, or a poll of the caller's is due, or `limit_ms` are
 * over. The first `count` entries of `polls` are the caller's, filled in, and the
 * WEFT_LISTENER_POLLS behind them are the listener's. */
void weft_listener_poll(const struct weft_listener *listener, struct pollfd *polls, nfds_t count,
                        int limit_ms);

/* Hears who has spoken, lets in who has come, and dismisses who was silent for too long. `polls`:
 * the listener's entries. */
void weft_listener_turn(struct weft_listener *listener, const struct pollfd *polls);

#endif
