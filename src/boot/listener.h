/* SPDX-License-Identifier: BSD-3-Clause */
/* A listening socket, and those who have come through it and said nothing yet. Anybody may come,
 * also other users, as fast as they can and as many as they are: a turn takes a bounded number of
 * them, so that whoever is in already is heard in every turn. Who keeps silent is dismissed in
 * time, and sooner if the room is needed; who is dismissed wrongly finds the line closed before
 * having said a word, and comes again. */
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

struct weft_listener {
    int listening, nsilent;
    struct weft_connection silent[WEFT_LISTENER_SILENT_MAX]; /* the oldest first */
    uint64_t rests_until_ns; /* the listening socket is not looked at: there were no descriptors for
                                peers */
    long rest_ms;
    bool told;
};

/* Hears what a peer says, without waiting. False: nothing yet. Otherwise the socket is the
 * hearer's to keep or to close. */
typedef bool weft_listener_hear(void *owner, int socket, pid_t pid);

/* The listening socket, or -errno of opening it, which is returned; it is the listener's from here
 * on. */
int weft_listener_open(struct weft_listener *listener, int listening);
void weft_listener_close(struct weft_listener *listener);

/* Sleeps until somebody comes or speaks, or there is something to do, or `limit_ms` are over. Of
 * `polls` the first `count` entries are the caller's, filled in, and WEFT_LISTENER_POLLS behind
 * them the listener's. */
void weft_listener_poll(const struct weft_listener *listener, struct pollfd *polls, nfds_t count,
                        int limit_ms);

/* Hears who has spoken, lets in who has come, and dismisses who was silent for too long. `polls`:
 * the listener's entries. */
void weft_listener_turn(struct weft_listener *listener, const struct pollfd *polls,
                        weft_listener_hear *hear, void *owner);

#endif
