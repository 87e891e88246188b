/* SPDX-License-Identifier: BSD-3-Clause */
/* A TCP port at which the processes of a job on other hosts come in. Anybody on the network may
 * connect, as often and as fast as they can; only who proves the key of an identity is handed over,
 * each identity once.
 *
 * - A handshake takes 5 s at most. At most `places` are under way; when one more comes, the oldest
 * of those that have shown no key has to go. So ten thousand silent connections do not keep out a
 * peer, who speaks at once.
 * - A turn does a bounded amount of work and never waits.
 * - Who is refused costs a line on stderr, but of each reason one in 10 s at most, with the number
 * of those that had none.
 *
 * Everything that the listener waits for is behind one descriptor. Close the listener as soon as
 * everybody is in: nothing listens any more then. */
#ifndef WEFT_BOOT_TLS_LISTENER_H
#define WEFT_BOOT_TLS_LISTENER_H

#include "boot/tls.h"

struct weft_tls_listener;

/* Takes over a connection whose handshake is done; its identity is weft_tls_peer(tls). */
typedef void weft_tls_listener_take(void *owner, struct weft_tls *tls);

struct weft_tls_listener_options {
    int places;              /* half-open connections at most: the number of peers and 16, say */
    weft_tls_key_of *key_of; /* both are called from weft_tls_listener_turn, with `owner` */
    weft_tls_listener_take *take;
    void *owner;
    const int *reserved; /* a socket of weft_tls_listener_reserve, which becomes the listener's also
                            on failure; NULL: a free port is found */
};

/* Takes a free port of all addresses of this host, at which nobody listens yet: calls there are
 * refused by the kernel. The socket, or -errno, not logged. */
int weft_tls_listener_reserve(uint16_t *port);

/* Listens on a port of all addresses of this host, IPv6 and IPv4. 0 or -errno, logged. */
int weft_tls_listener_open(struct weft_tls_listener **listener,
                           const struct weft_tls_listener_options *options);

/* Closes the port and all connections that are half open, and writes how many were refused without
 * a line. NULL is fine. */
void weft_tls_listener_close(struct weft_tls_listener *listener);

uint16_t weft_tls_listener_port(const struct weft_tls_listener *listener);

/* To be polled for POLLIN, in any loop. Then, and harmlessly at any other time, take a turn. `take`
 * must not close the listener. */
int weft_tls_listener_descriptor(const struct weft_tls_listener *listener);
void weft_tls_listener_turn(struct weft_tls_listener *listener);

/* Connects to a listener: a socket, or -errno, not logged. `address` is numeric, IPv4 or IPv6, the
 * latter with %interface where it is link-local. Waits `wait_ms` at most (-ETIMEDOUT). */
int weft_tls_listener_connect(const char *address, uint16_t port, int wait_ms);

#endif
