/* SPDX-License-Identifier: BSD-3-Clause */
/* An external PSK is passed to OpenSSL as a session to resume, which also determines the cipher.
 * The socket is read and written by functions of this file, because with OpenSSL's own a write to a
 * closed connection would raise SIGPIPE. */
#include "boot/tls.h"
#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/descriptor.h"
#include "base/log.h"
#include "base/openssl.h"

enum {
    WHY_BYTES = 192,
    RECORD_BYTES_MAX = 16 * 1024,
    RECORDS_MAX = 1 << 23, /* per key; RFC 8446, 5.5 allows 2^24.5 for AES-GCM */
};

struct weft_tls {
    weft_ssl *ssl;
    int socket;
    int error, write_error;                 /* what ended reads, or writes; 0: nothing */
    short waits;                            /* events for which the last call waits */
    bool connects, known, shaken;           /* known: `identity` has a key */
    char identity[WEFT_TLS_IDENTITY_BYTES]; /* of the side that connects */
    unsigned char key[WEFT_TLS_KEY_BYTES];  /* of that identity; wiped after the handshake */
    weft_tls_key_of *key_of;
    void *owner;
    unsigned records; /* written under the current key */
    char why[WHY_BYTES];
};

/* One context per role, and the socket functions, for the whole process. */
static struct {
    pthread_once_t once;
    int error;
    weft_ssl_context *client, *server;
    weft_bio_method *sockets;
} library = {.once = PTHREAD_ONCE_INIT};

/* --- The socket ------------------------------------------------------------------------------- */

static int socket_result(weft_bio *bio, ssize_t bytes, int direction) {
    weft_openssl.BIO_clear_flags(bio, WEFT_BIO_READ | WEFT_BIO_WRITE | WEFT_BIO_RETRY);
    if (bytes < 0 && errno == EAGAIN)
        weft_openssl.BIO_set_flags(bio, direction | WEFT_BIO_RETRY);
    return (int)bytes;
}

static int socket_read(weft_bio *bio, char *to, int bytes) {
    const struct weft_tls *tls = weft_openssl.BIO_get_data(bio);
    ssize_t got = -1;
    if (!weft_descriptor_is_ours(tls->socket))
        errno = EBADF;
    else
        do {
            got = recv(tls->socket, to, (size_t)bytes, MSG_DONTWAIT);
        } while (got < 0 && errno == EINTR);
    return socket_result(bio, got, WEFT_BIO_READ);
}

static int socket_write(weft_bio *bio, const char *from, int bytes) {
    const struct weft_tls *tls = weft_openssl.BIO_get_data(bio);
    ssize_t sent = -1;
    if (!weft_descriptor_is_ours(tls->socket))
        errno = EBADF;
    else
        do {
            sent = send(tls->socket, from, (size_t)bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
        } while (sent < 0 && errno == EINTR);
    return socket_result(bio, sent, WEFT_BIO_WRITE);
}

static long socket_ctrl(weft_bio *bio, int command, long number, void *pointer) {
    (void)bio, (void)number, (void)pointer;
    return command == WEFT_BIO_CTRL_FLUSH;
}

/* --- Keys ------------------------------------------------------------------------------------- */

static weft_ssl_session *session_of_key(weft_ssl *ssl,
                                        const unsigned char key[WEFT_TLS_KEY_BYTES]) {
    static const unsigned char aes_256_gcm_sha384[] = {0x13, 0x02};
    const weft_ssl_cipher *cipher = weft_openssl.SSL_CIPHER_find(ssl, aes_256_gcm_sha384);
    weft_ssl_session *session = cipher ? weft_openssl.SSL_SESSION_new() : NULL;
    if (session && (!weft_openssl.SSL_SESSION_set1_master_key(session, key, WEFT_TLS_KEY_BYTES) ||
                    !weft_openssl.SSL_SESSION_set_cipher(session, cipher) ||
                    !weft_openssl.SSL_SESSION_set_protocol_version(session, WEFT_SSL_TLS_1_3))) {
        weft_openssl.SSL_SESSION_free(session);
        return NULL;
    }
    return session;
}

/* Called by OpenSSL on the side that connects; a second time if the other side wants another group.
 */
static int session_use(weft_ssl *ssl, const weft_evp_md *digest, const unsigned char **identity,
                       size_t *bytes, weft_ssl_session **session) {
    struct weft_tls *tls = weft_openssl.SSL_get_ex_data(ssl, 0);
    (void)digest; /* there is only one cipher */
    *session = session_of_key(ssl, tls->key);
    *identity = (const unsigned char *)tls->identity;
    *bytes = strlen(tls->identity);
    return *session != NULL;
}

/* Copies a stranger's identity as printable text. Returns false if it cannot be a valid identity.
 */
static bool claim_copy(char *to, const unsigned char *identity, size_t bytes) {
    size_t kept = bytes < WEFT_TLS_IDENTITY_BYTES ? bytes : WEFT_TLS_IDENTITY_BYTES - 1;
    bool printable = kept == bytes && bytes > 0;
    for (size_t i = 0; i < kept; i++) {
        bool is = identity[i] > ' ' && identity[i] < 0x7f;
        to[i] = is ? (char)identity[i] : '?';
        printable &= is;
    }
    to[kept] = '\0';
    return printable;
}

/* Called by OpenSSL for each identity that the other side offers, until there is a session. A known
 * identity is not replaced by another one. */
static int session_find(weft_ssl *ssl, const unsigned char *identity, size_t bytes,
                        weft_ssl_session **session) {
    struct weft_tls *tls = weft_openssl.SSL_get_ex_data(ssl, 0);
    char claim[WEFT_TLS_IDENTITY_BYTES];
    unsigned char key[WEFT_TLS_KEY_BYTES];
    bool printable = claim_copy(claim, identity, bytes);
    *session = NULL;
    if (tls->known && strcmp(claim, tls->identity) != 0)
        return 1;
    memcpy(tls->identity, claim, sizeof claim);
    tls->known = printable && tls->key_of(tls->owner, claim, key);
    if (tls->known)
        *session = session_of_key(ssl, key);
    explicit_bzero(key, sizeof key);
    return 1;
}

/* --- The library ------------------------------------------------------------------------------ */

/* Prefers X25519, which OpenSSL lacks if it is restricted to FIPS. */
static bool groups_set(weft_ssl_context *context) {
    static char preferred[] = "X25519:P-256", plain[] = "P-256";
    return weft_openssl.SSL_CTX_ctrl(context, WEFT_SSL_CTRL_GROUPS_LIST, 0, preferred) == 1 ||
           weft_openssl.SSL_CTX_ctrl(context, WEFT_SSL_CTRL_GROUPS_LIST, 0, plain) == 1;
}

static weft_ssl_context *context_make(const weft_ssl_method *method) {
    weft_ssl_context *context = weft_openssl.SSL_CTX_new(method);
    if (!context)
        return NULL;
    long minimum =
        weft_openssl.SSL_CTX_ctrl(context, WEFT_SSL_CTRL_MIN_VERSION, WEFT_SSL_TLS_1_3, NULL);
    if (minimum != 1 || !groups_set(context) ||
        !weft_openssl.SSL_CTX_set_ciphersuites(context, "TLS_AES_256_GCM_SHA384") ||
        !weft_openssl.SSL_CTX_set_num_tickets(context, 0)) {
        weft_openssl.SSL_CTX_free(context);
        return NULL;
    }
    weft_openssl.SSL_CTX_ctrl(context, WEFT_SSL_CTRL_SESSION_CACHE, WEFT_SSL_CACHE_OFF, NULL);
    weft_openssl.SSL_CTX_ctrl(context, WEFT_SSL_CTRL_MODE,
                              WEFT_SSL_MODE_PARTIAL_WRITE | WEFT_SSL_MODE_MOVING_WRITE_BUFFER |
                                  WEFT_SSL_MODE_RELEASE_BUFFERS,
                              NULL);
    weft_openssl.SSL_CTX_set_options(context, WEFT_SSL_OP_NO_TICKET | WEFT_SSL_OP_NO_RENEGOTIATION);
    return context;
}

/* A server that presents a certificate instead of the key is refused, because no authority is
 * trusted. */
static int library_begin(void) {
    if (weft_openssl_load() < 0) {
        weft_log("%s; jobs on several hosts need it", weft_fail_text());
        return -ENOSYS;
    }
    library.client = context_make(weft_openssl.TLS_client_method());
    library.server = context_make(weft_openssl.TLS_server_method());
    library.sockets = weft_openssl.BIO_meth_new(WEFT_BIO_SOURCE_SINK, "weft");
    if (!library.client || !library.server || !library.sockets ||
        !weft_openssl.BIO_meth_set_read(library.sockets, socket_read) ||
        !weft_openssl.BIO_meth_set_write(library.sockets, socket_write) ||
        !weft_openssl.BIO_meth_set_ctrl(library.sockets, socket_ctrl)) {
        weft_log("OpenSSL refuses TLS 1.3 with AES-256-GCM: does its configuration "
                 "(openssl.cnf) forbid that?");
        return -ENOSYS;
    }
    weft_openssl.SSL_CTX_set_verify(library.client, WEFT_SSL_VERIFY_PEER, NULL);
    weft_openssl.SSL_CTX_set_psk_use_session_callback(library.client, session_use);
    weft_openssl.SSL_CTX_set_psk_find_session_callback(library.server, session_find);
    return 0;
}

static void library_load(void) {
    library.error = library_begin();
}

int weft_tls_load(void) {
    pthread_once(&library.once, library_load);
    return library.error;
}

/* --- Connections ------------------------------------------------------------------------------ */

/* Makes OpenSSL's objects for a connection. */
static int connection_make(struct weft_tls *tls) {
    weft_bio *bio = weft_openssl.BIO_new(library.sockets);
    tls->ssl = weft_openssl.SSL_new(tls->connects ? library.client : library.server);
    if (!bio || !tls->ssl || !weft_openssl.SSL_set_ex_data(tls->ssl, 0, tls)) {
        weft_openssl.BIO_free(bio);
        return -ENOMEM;
    }
    weft_openssl.BIO_set_data(bio, tls);
    weft_openssl.BIO_set_init(bio, 1);
    weft_openssl.SSL_set_bio(tls->ssl, bio, bio);
    if (tls->connects)
        weft_openssl.SSL_set_connect_state(tls->ssl);
    else
        weft_openssl.SSL_set_accept_state(tls->ssl);
    return 0;
}

static int connection_begin(struct weft_tls **began, const struct weft_tls *as) {
    int error = weft_tls_load();
    struct weft_tls *tls = error ? NULL : malloc(sizeof *tls);
    if (!tls) {
        close(as->socket);
    } else {
        *tls = *as;
        setsockopt(tls->socket, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
        error = connection_make(tls);
    }
    if (!error && tls) {
        *began = tls;
        return 0;
    }
    weft_tls_close(tls);
    if (error && error != -ENOMEM)
        return error;
    weft_log("there is no memory for a connection to another host");
    return -ENOMEM;
}

int weft_tls_connect(struct weft_tls **tls, int socket, const char *identity,
                     const unsigned char key[WEFT_TLS_KEY_BYTES]) {
    struct weft_tls as = {.socket = socket, .connects = true, .waits = POLLOUT};
    snprintf(as.identity, sizeof as.identity, "%s", identity);
    memcpy(as.key, key, sizeof as.key);
    int error = connection_begin(tls, &as);
    explicit_bzero(&as, sizeof as);
    return error;
}

int weft_tls_accept(struct weft_tls **tls, int socket, weft_tls_key_of *key_of, void *owner) {
    struct weft_tls as = {.socket = socket, .waits = POLLIN, .key_of = key_of, .owner = owner};
    return connection_begin(tls, &as);
}

void weft_tls_close(struct weft_tls *tls) {
    if (!tls)
        return;
    if (tls->shaken && !tls->error && !tls->write_error) {
        weft_openssl.ERR_clear_error();
        weft_openssl.SSL_shutdown(
            tls->ssl); /* its result does not matter: the other side reads -EPIPE in any case */
    }
    weft_openssl.SSL_free(tls->ssl);
    weft_descriptor_close(tls->socket);
    explicit_bzero(tls, sizeof *tls);
    free(tls);
}

/* Returns -EAGAIN if the last call of OpenSSL can be repeated, -EPIPE if the other side has closed,
 * 0 if OpenSSL has queued an error. */
static int result_judge(struct weft_tls *tls, int result) {
    int kind = weft_openssl.SSL_get_error(tls->ssl, result);
    unsigned long first = weft_openssl.ERR_peek_error();
    if (kind == WEFT_SSL_ERROR_WANT_READ || kind == WEFT_SSL_ERROR_WANT_WRITE) {
        tls->waits = kind == WEFT_SSL_ERROR_WANT_READ ? POLLIN : POLLOUT;
        return -EAGAIN;
    }
    bool gone = kind != WEFT_SSL_ERROR_SSL || (first & WEFT_SSL_REASON_BITS) == WEFT_SSL_REASON_EOF;
    return gone ? -EPIPE : 0;
}

static const char *objection_text(void) {
    const char *text = weft_openssl.ERR_reason_error_string(weft_openssl.ERR_peek_error());
    return text ? text : "no reason given";
}

/* --- The handshake ---------------------------------------------------------------------------- */

__attribute__((format(printf, 3, 4))) static int handshake_end(struct weft_tls *tls, int error,
                                                               const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(tls->why, sizeof tls->why, format, arguments);
    va_end(arguments);
    explicit_bzero(tls->key, sizeof tls->key);
    return tls->error = tls->write_error = error;
}

/* Explains OpenSSL's error for the side that connects. */
static int called_refuse(struct weft_tls *tls, unsigned long reason) {
    if (reason >= WEFT_SSL_REASON_ALERT)
        return handshake_end(tls, -EACCES, "it does not accept the key of \"%s\" (%s)",
                             tls->identity, objection_text());
    return handshake_end(tls, -EPROTO, "it does not answer as a process of this job (%s)",
                         objection_text());
}

/* Explains OpenSSL's error for the side that accepts. */
static int caller_refuse(struct weft_tls *tls, unsigned long reason) {
    if (reason == WEFT_SSL_REASON_BINDER)
        return handshake_end(tls, -EACCES, "it does not have the key of \"%s\"", tls->identity);
    if (tls->known)
        return handshake_end(tls, -EACCES,
                             "it repeats what \"%s\" has sent, or its data was altered in transit",
                             tls->identity);
    if (tls->identity[0])
        return handshake_end(tls, -EACCES, "no process of this job is called \"%s\"",
                             tls->identity);
    return handshake_end(tls, -EPROTO, "it does not speak as a process of this job (%s)",
                         objection_text());
}

static int handshake_fail(struct weft_tls *tls, int result) {
    int error = result_judge(tls, result);
    if (error == -EAGAIN)
        return error;
    if (error)
        return handshake_end(tls, error, "it has closed the connection");
    unsigned long reason = weft_openssl.ERR_peek_error() & WEFT_SSL_REASON_BITS;
    return tls->connects ? called_refuse(tls, reason) : caller_refuse(tls, reason);
}

int weft_tls_shake(struct weft_tls *tls) {
    if (tls->shaken || tls->error)
        return tls->error;
    weft_openssl.ERR_clear_error();
    int result = weft_openssl.SSL_do_handshake(tls->ssl);
    if (result != 1)
        return handshake_fail(tls, result);
    if (!weft_openssl.SSL_session_reused(tls->ssl))
        return handshake_end(tls, -EACCES, "it has shown no key");
    explicit_bzero(tls->key, sizeof tls->key);
    tls->shaken = true;
    tls->waits = 0;
    return 0;
}

const char *weft_tls_why(const struct weft_tls *tls) {
    return tls->why;
}

const char *weft_tls_peer(const struct weft_tls *tls) {
    return tls->shaken && !tls->connects ? tls->identity : NULL;
}

const char *weft_tls_claim(const struct weft_tls *tls) {
    return tls->known ? tls->identity : "";
}

/* --- Bytes ------------------------------------------------------------------------------------ */

/* Handles a failed read or write. After a write to a closed connection there may still be something
 * to read. */
static int transfer_fail(struct weft_tls *tls, int result, int *end) {
    int error = result_judge(tls, result);
    if (error == 0) {
        snprintf(tls->why, sizeof tls->why, "its data was altered in transit (%s)",
                 objection_text());
        tls->error = tls->write_error = error = -EBADMSG;
    } else if (error == -EPIPE) {
        snprintf(tls->why, sizeof tls->why, "it has closed the connection");
        *end = error;
    }
    return error;
}

ssize_t weft_tls_read(struct weft_tls *tls, void *to, size_t bytes) {
    if (tls->error)
        return tls->error;
    weft_openssl.ERR_clear_error();
    int got = weft_openssl.SSL_read(tls->ssl, to, bytes < INT_MAX ? (int)bytes : INT_MAX);
    return got > 0 ? got : transfer_fail(tls, got, &tls->error);
}

/* The new keys are announced before the next write. */
static void records_count(struct weft_tls *tls, int sent) {
    tls->records += 1 + (unsigned)sent / RECORD_BYTES_MAX;
    if (tls->records < RECORDS_MAX)
        return;
    weft_openssl.SSL_key_update(tls->ssl, WEFT_SSL_KEY_UPDATE);
    tls->records = 0;
}

ssize_t weft_tls_write(struct weft_tls *tls, const void *from, size_t bytes) {
    if (tls->write_error)
        return tls->write_error;
    weft_openssl.ERR_clear_error();
    int sent = weft_openssl.SSL_write(tls->ssl, from, bytes < INT_MAX ? (int)bytes : INT_MAX);
    if (sent <= 0)
        return transfer_fail(tls, sent, &tls->write_error);
    tls->waits = 0;
    records_count(tls, sent);
    return sent;
}

void weft_tls_keep(struct weft_tls *tls) {
    tls->socket = weft_descriptor_keep(tls->socket);
}

int weft_tls_socket(const struct weft_tls *tls) {
    return tls->socket;
}

/* A handshake that waits to write must not be woken by incoming data. */
short weft_tls_events(const struct weft_tls *tls) {
    return tls->shaken ? tls->waits | POLLIN : tls->waits;
}

int weft_tls_derive(unsigned char key[WEFT_TLS_KEY_BYTES],
                    const unsigned char secret[WEFT_TLS_KEY_BYTES], const char *label,
                    uint32_t index) {
    static const unsigned char salt[WEFT_TLS_KEY_BYTES];
    enum { LABEL_BYTES_MAX = 64 };
    unsigned char info[LABEL_BYTES_MAX + 5], extracted[WEFT_TLS_KEY_BYTES];
    size_t bytes = strnlen(label, LABEL_BYTES_MAX);
    int error = weft_tls_load();
    if (error)
        return error;
    memcpy(info, label, bytes);
    for (int shift = 24; shift >= 0; shift -= 8)
        info[bytes++] = (unsigned char)(index >> shift);
    info[bytes++] = 1; /* number of the only block */
    const weft_evp_md *digest = weft_openssl.EVP_sha256();
    if (!weft_openssl.HMAC(digest, salt, sizeof salt, secret, WEFT_TLS_KEY_BYTES, extracted,
                           NULL) ||
        !weft_openssl.HMAC(digest, extracted, sizeof extracted, info, bytes, key, NULL)) {
        weft_log("OpenSSL cannot compute HMAC-SHA256: is its configuration (openssl.cnf) broken?");
        error = -ENOSYS;
    }
    explicit_bzero(extracted, sizeof extracted);
    return error;
}
