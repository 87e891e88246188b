/* SPDX-License-Identifier: BSD-3-Clause */
/* A connection between two processes of a job on different hosts: TLS 1.3 over a socket, by a key
 * that both sides have from the launcher (an external PSK) and a fresh X25519 exchange. There are
 * no certificates, no tickets, no early data, and there is no plain mode.
 *
 * A key belongs to an identity, the name by which one side connects: printable ASCII without
 * blanks. Who has finished a handshake has proven that it knows the key of its identity, and is no
 * recording of somebody who did. OpenSSL 3 does the work; it is opened at run time. Nothing here
 * blocks: a call that cannot go on returns -EAGAIN, and weft_tls_events says for what to poll. */
#ifndef WEFT_BOOT_TLS_H
#define WEFT_BOOT_TLS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define WEFT_TLS_KEY_BYTES      32
#define WEFT_TLS_IDENTITY_BYTES 64 /* with the zero at its end */

struct weft_tls;

/* Opens OpenSSL, the first time. 0 or -errno, logged with what to install; the calls below return
 * the same. */
int weft_tls_load(void);

/* The key of an identity, which comes from a stranger and is printable ASCII. False: there is no
 * such identity. */
typedef bool weft_tls_key_of(void *owner, const char *identity,
                             unsigned char key[WEFT_TLS_KEY_BYTES]);

/* Begin a handshake, as the side that connects or as the side that is called. The socket becomes
 * the connection's, also on failure. 0, or -errno, which is logged: only if there
 * is no OpenSSL or no memory. */
int weft_tls_connect(struct weft_tls **tls, int socket, const char *identity,
                     const unsigned char key[WEFT_TLS_KEY_BYTES]);
int weft_tls_accept(struct weft_tls **tls, int socket, weft_tls_key_of *key_of, void *owner);

/* Goes on with the handshake. 0: it is done; -EAGAIN: later; -EACCES: the other side does not have
 * the key; -EPROTO: it does not speak as ours; -EPIPE: it is gone. weft_tls_why has the words,
 * which nobody has logged. */
int weft_tls_shake(struct weft_tls *tls);
const char *weft_tls_why(const struct weft_tls *tls);

/* The side that is called: the identity that the other one has proven, or NULL before it has. */
const char *weft_tls_peer(const struct weft_tls *tls);

/* The identity of this job that the other side claims, "" before it has. Where weft_tls_shake
 * returns -EAGAIN then, it has shown a message of somebody with the key, which may be a recording.
 */
const char *weft_tls_claim(const struct weft_tls *tls);

/* After the handshake: bytes that were read or written, at least one, fewer than asked for if that
 * is all there is, or room for. -EAGAIN: none now; -EPIPE: the connection is over; -EBADMSG: what
 * came was altered on its way. A write that returned -EAGAIN is repeated with the same bytes, and
 * more may follow them. What has been read from the socket may still lie inside: read until -EAGAIN
 * before a poll. */
ssize_t weft_tls_read(struct weft_tls *tls, void *to, size_t bytes);
ssize_t weft_tls_write(struct weft_tls *tls, const void *from, size_t bytes);

/* Keeps the socket as a descriptor that outlives the making of the job (base/descriptor.h), under
 * another number. No poll set or epoll must have the old one. */
void weft_tls_keep(struct weft_tls *tls);

/* The socket, and what to poll it for before the call that has returned -EAGAIN can go on. */
int weft_tls_socket(const struct weft_tls *tls);
short weft_tls_events(const struct weft_tls *tls);

/* Closes the connection and its socket. NULL is fine. TCP throws away what is still under way to
 * the other side if something unread lies here: who has said its last word reads until -EPIPE
 * first. */
void weft_tls_close(struct weft_tls *tls);

/* The key of one of many: HKDF-SHA256 (RFC 5869) without salt, of `label` and `index`, the latter
 * as four bytes with the highest first. 0 or -errno, logged: there is no OpenSSL. */
int weft_tls_derive(unsigned char key[WEFT_TLS_KEY_BYTES],
                    const unsigned char secret[WEFT_TLS_KEY_BYTES], const char *label,
                    uint32_t index);

#endif
