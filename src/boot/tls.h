/* SPDX-License-Identifier: BSD-3-Clause */
/* A connection between two processes of a job on different hosts: TLS 1.3 over a socket,
 * authenticated by a key that both sides have from the launcher (an external PSK), with a fresh
 * X25519 exchange. There are no certificates, no tickets, no early data, and there is no plain
 * mode.
 *
 * A key belongs to an identity, the name with which one side connects: printable ASCII without
 * blanks. A side that has completed a handshake has proven that it knows the key of its identity; a
 * replayed recording cannot complete one. The implementation is OpenSSL 3, opened at run time. No
 * function blocks: a call that cannot continue returns -EAGAIN, and weft_tls_events returns the
 * events to poll for. */
#ifndef WEFT_BOOT_TLS_H
#define WEFT_BOOT_TLS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define WEFT_TLS_KEY_BYTES      32
#define WEFT_TLS_IDENTITY_BYTES 64 /* with the terminating zero */

struct weft_tls;

/* Opens OpenSSL at the first call. Returns 0, or -errno after logging what to install; the
 * functions below return the same error. */
int weft_tls_load(void);

/* Looks up the key of an identity that a stranger claims, which is printable ASCII. Returns false
 * if there is none. */
typedef bool weft_tls_key_of(void *owner, const char *identity,
                             unsigned char key[WEFT_TLS_KEY_BYTES]);

/* Begin a handshake, as the side that connects or the side that accepts. The socket belongs to the
 * connection, also on failure. Return 0, or -errno after logging the reason, which is missing
 * OpenSSL or memory. */
int weft_tls_connect(struct weft_tls **tls, int socket, const char *identity,
                     const unsigned char key[WEFT_TLS_KEY_BYTES]);
int weft_tls_accept(struct weft_tls **tls, int socket, weft_tls_key_of *key_of, void *owner);

/* Continues the handshake. Returns 0 when it is complete; -EAGAIN if it has to wait; -EACCES if the
 * other side does not have the key; -EPROTO if it does not follow the protocol; -EPIPE if it has
 * closed. weft_tls_why returns the reason, which has not been logged. */
int weft_tls_shake(struct weft_tls *tls);
const char *weft_tls_why(const struct weft_tls *tls);

/* On the side that accepts: returns the identity that the other side has proven, or NULL before
 * that. */
const char *weft_tls_peer(const struct weft_tls *tls);

/* Returns the valid identity that the other side claims, or "" before that. If it is not "" while
 * weft_tls_shake returns -EAGAIN, the other side has sent a message made with the key, though
 * perhaps a replayed recording. */
const char *weft_tls_claim(const struct weft_tls *tls);

/* Read and write after the handshake. Return the number of bytes, at least one, which may be fewer
 * than requested; -EAGAIN if none is possible now; -EPIPE if the connection has ended; -EBADMSG if
 * data was altered in transit. A write that returned -EAGAIN is repeated with the same bytes, and
 * possibly more after them. Data may be buffered inside: read until -EAGAIN before a poll. */
ssize_t weft_tls_read(struct weft_tls *tls, void *to, size_t bytes);
ssize_t weft_tls_write(struct weft_tls *tls, const void *from, size_t bytes);

/* Moves the socket to a number above those of programs, as weft_descriptor_keep does
 * (base/descriptor.h). Remove the old number from poll sets and epoll first. */
void weft_tls_keep(struct weft_tls *tls);

/* Return the socket, and the events to poll it for before the call that returned -EAGAIN is
 * repeated. */
int weft_tls_socket(const struct weft_tls *tls);
short weft_tls_events(const struct weft_tls *tls);

/* Closes the connection and its socket. NULL is allowed. TCP discards data in transit to the other
 * side if unread data is left here, so a side that has sent its last data reads until -EPIPE first.
 */
void weft_tls_close(struct weft_tls *tls);

/* Derives the key with number `index` from a secret: HKDF-SHA256 (RFC 5869) without salt, with
 * `label` and `index`, the latter as four bytes in big-endian order. Returns 0, or -errno after
 * logging that OpenSSL is missing. */
int weft_tls_derive(unsigned char key[WEFT_TLS_KEY_BYTES],
                    const unsigned char secret[WEFT_TLS_KEY_BYTES], const char *label,
                    uint32_t index);

#endif
