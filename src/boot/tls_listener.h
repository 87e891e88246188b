/* SPDX-License-Identifier: BSD-3-Clause */
/* A TCP port for the processes of a job on other hosts. Anybody on the network may connect, as
 * often and as fast as they can; a connection is handed over only after it has proven the key of an
 * identity, and each identity is accepted once.
 *
 * - A handshake may take 5 s. At most `places` are in progress; for one more, the oldest that has
 *   shown no key is refused. So ten thousand silent connections do not keep out a peer, which sends
 *   at once.
 * - A turn does a bounded amount of work and never blocks.
 * - A refused connection is one line on stderr, but at most one line in 10 s for each reason, with
 *   the number of those that had no line.
 *
 * All descriptors are behind one epoll descriptor. Close the listener as soon as all peers have
 * connected: the port is closed then. */
#ifndef WEFT_BOOT_TLS_LISTENER_H
#define WEFT_BOOT_TLS_LISTENER_H

#include "boot/tls.h"

struct weft_tls_listener;

/* Takes over a connection whose handshake is done; its identity is weft_tls_peer(tls). */
typedef void weft_tls_listener_take(void *owner, struct weft_tls *tls);

struct weft_tls_listener_options {
    int places; /* the most handshakes in progress: the number of peers and some more */
    weft_tls_key_of
        *key_of; /* key_of and take are called from weft_tls_listener_turn, with `owner` */
    weft_tls_listener_take *take;
    void *owner;
    const int *reserved; /* a socket of weft_tls_listener_reserve, which becomes the listener's also
                            on failure; NULL: a free port is found */
};

/* Binds a free port on all addresses of this host, without listening: the kernel refuses
 * connections to it. Returns the socket, or -errno, not logged. */
int weft_tls_listener_reserve(uint16_t *port);

/* Listens on all addresses of this host, IPv6 and IPv4. Returns 0 or -errno, logged. */
int weft_tls_listener_open(struct weft_tls_listener **listener,
                           const struct weft_tls_listener_options *options);

/* Closes the port and all pending connections, and logs how many were refused without a line. Does
 * nothing for NULL. */
void weft_tls_listener_close(struct weft_tls_listener *listener);

uint16_t weft_tls_listener_port(const struct weft_tls_listener *listener);

/* Returns the descriptor to be polled for POLLIN. Take a turn after the poll; more turns do no
 * harm. `take` must not close the listener. */
int weft_tls_listener_descriptor(const struct weft_tls_listener *listener);
void weft_tls_listener_turn(struct weft_tls_listener *listener);

/* Connects to a listener. `address` is numeric, IPv4 or IPv6; a link-local one has %interface.
 * Blocks for at most `wait_ms` (-ETIMEDOUT). Returns the socket, or -errno, not logged. */
int weft_tls_listener_connect(const char *address, uint16_t port, int wait_ms);

#endif
