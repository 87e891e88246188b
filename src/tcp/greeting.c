/* SPDX-License-Identifier: BSD-3-Clause */
/* Each message of a greeting has a fixed length and is read alone, so anything after it stays in
 * the socket. The messages are so short that a new socket accepts each one whole. */
#include "tcp/greeting.h"
#include <errno.h>
#include <string.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/descriptor.h"
#include "tcp/connection.h"

enum {
    STRANGERS_MAX = 64,
    ACCEPTS_MAX = 16, /* calls accepted by one poll */
    TRIES_MAX = 1000,
};
#define PATIENCE_NS UINT64_C(5000000000)

static const unsigned char magic[8] = "weftTCP", welcome[8] = "welcome";

/* --- Connections that are not open yet -------------------------------------------------------- */

static void greeting_add(struct weft_tcp_connection *connection) {
    struct weft_tcp_connection **last = &connection->end->greeting;
    while (*last)
        last = &(*last)->next;
    *last = connection;
    connection->end->nstrangers += !connection->made;
}

static void greeting_remove(struct weft_tcp_connection *connection) {
    struct weft_tcp_connection **at = &connection->end->greeting;
    while (*at != connection)
        at = &(*at)->next;
    *at = connection->next;
    connection->end->nstrangers -= !connection->made;
}

static void hang_up(struct weft_tcp_connection *connection) {
    greeting_remove(connection);
    weft_tcp_connection_free(connection);
}

/* Returns the stranger that connected first, or NULL if there is none. */
static struct weft_tcp_connection *oldest_stranger(const struct weft_engine_end *end) {
    struct weft_tcp_connection *oldest = end->greeting;
    while (oldest && oldest->made)
        oldest = oldest->next;
    return oldest;
}

void weft_tcp_greeting_dismiss(struct weft_engine_end *end) {
    struct weft_tcp_connection *oldest = oldest_stranger(end);
    uint64_t now_ns = oldest ? weft_clock_ns() : 0;
    while (oldest && now_ns - oldest->since_ns > PATIENCE_NS) {
        hang_up(oldest);
        oldest = oldest_stranger(end);
    }
}

/* --- Proofs ---------------------------------------------------------------------------------- */

static bool random_fill(void *bytes, size_t nbytes) {
    return getrandom(bytes, nbytes, 0) == (ssize_t)nbytes;
}

/* Computes the proof of one side: `who` is 'a' for the called side (it answers), 'c' for the
 * caller. */
static void prove(const struct weft_tcp_greeting *greeting, const unsigned char *secret, char who,
                  unsigned char proof[WEFT_SIPHASH_BYTES]) {
    struct {
        struct weft_tcp_hello hello;
        unsigned char nonce[WEFT_TCP_NONCE_BYTES];
        char who;
    } said = {.hello = greeting->hello, .who = who};
    memcpy(said.nonce, greeting->challenge.nonce, sizeof said.nonce);
    weft_siphash(proof, secret, &said, sizeof said);
}

/* --- Links ----------------------------------------------------------------------------------- */

/* Returns whether this is the connection that both sides use if there are two. */
static bool is_preferred(const struct weft_engine_link *link,
                         const struct weft_tcp_connection *connection) {
    bool own_is_smaller = memcmp(link->end->own.name, link->peer.name, sizeof link->peer.name) < 0;
    return connection->made == own_is_smaller;
}

void weft_tcp_link_take(struct weft_engine_link *link, struct weft_tcp_connection *connection) {
    connection->link = link;
    if (!link->out) {
        link->out = connection;
        connection->unsent = link->first;
        link->first = NULL;
        if (connection->unsent)
            weft_tcp_connection_watch(connection, EPOLLIN | EPOLLOUT);
    } else if (is_preferred(link, connection)) {
        link->better = connection;
    }
}

static struct weft_engine_link *link_find(struct weft_engine_end *end, const unsigned char *name) {
    struct weft_engine_link *link = end->links;
    while (link && memcmp(link->peer.name, name, sizeof link->peer.name) != 0)
        link = link->next;
    return link;
}

static void greeting_end(struct weft_tcp_connection *connection) {
    struct weft_engine_end *end = connection->end;
    struct weft_engine_link *link = connection->link;
    greeting_remove(connection);
    connection->stage = WEFT_TCP_OPEN;
    connection->next = end->connections;
    end->connections = connection;
    end->moved++;
    if (!link)
        link = link_find(end, connection->greeting.hello.name);
    if (link)
        weft_tcp_link_take(link, connection);
}

/* --- Messages -------------------------------------------------------------------------------- */

static bool say(struct weft_tcp_connection *connection, const void *message, size_t bytes,
                enum weft_tcp_stage next) {
    connection->stage = next;
    connection->greeting.have = 0;
    return send(connection->socket, message, bytes, MSG_NOSIGNAL) == (ssize_t)bytes;
}

static bool is_connected(struct weft_tcp_connection *connection, int *error) {
    socklen_t bytes = sizeof *error;
    if (getsockopt(connection->socket, SOL_SOCKET, SO_ERROR, error, &bytes) != 0)
        *error = errno;
    return *error == 0;
}

static bool say_hello(struct weft_tcp_connection *connection) {
    struct weft_tcp_hello *hello = &connection->greeting.hello;
    memcpy(hello->magic, magic, sizeof magic);
    memcpy(hello->name, connection->end->own.name, sizeof hello->name);
    weft_tcp_connection_watch(connection, EPOLLIN);
    return random_fill(hello->nonce, sizeof hello->nonce) &&
           say(connection, hello, sizeof *hello, WEFT_TCP_AWAITS_CHALLENGE);
}

static bool say_challenge(struct weft_tcp_connection *connection) {
    struct weft_tcp_greeting *greeting = &connection->greeting;
    struct weft_tcp_challenge *challenge = &greeting->challenge;
    if (memcmp(greeting->hello.magic, magic, sizeof magic) != 0 ||
        !random_fill(challenge->nonce, sizeof challenge->nonce))
        return false;
    prove(greeting, connection->end->own.secret, 'a', challenge->proof);
    return say(connection, challenge, sizeof *challenge, WEFT_TCP_AWAITS_PROOF);
}

/* Gives the connection up if the peer's own call has succeeded meanwhile and is the one to keep;
 * the peer has not used this one yet. */
static bool say_proof(struct weft_tcp_connection *connection) {
    struct weft_tcp_greeting *greeting = &connection->greeting;
    const struct weft_engine_link *link = connection->link;
    unsigned char proof[WEFT_SIPHASH_BYTES];
    prove(greeting, link->peer.secret, 'a', proof);
    if (!weft_siphash_equal(proof, greeting->challenge.proof) ||
        (link->out && !is_preferred(link, connection)))
        return false;
    prove(greeting, link->peer.secret, 'c', proof);
    return say(connection, proof, sizeof proof, WEFT_TCP_AWAITS_WELCOME);
}

static bool say_welcome(struct weft_tcp_connection *connection) {
    const struct weft_tcp_greeting *greeting = &connection->greeting;
    unsigned char proof[WEFT_SIPHASH_BYTES];
    prove(greeting, connection->end->own.secret, 'c', proof);
    if (!weft_siphash_equal(proof, greeting->proof) ||
        !say(connection, welcome, sizeof welcome, WEFT_TCP_OPEN))
        return false;
    greeting_end(connection);
    return true;
}

static bool take_welcome(struct weft_tcp_connection *connection) {
    if (memcmp(connection->greeting.welcome, welcome, sizeof welcome) != 0)
        return false;
    greeting_end(connection);
    return true;
}

/* The message awaited at a stage, its place in the greeting, and the function to call when it is
 * complete. */
struct weft_tcp_step {
    size_t at, bytes;
    bool (*done)(struct weft_tcp_connection *connection);
};

#define MESSAGE(field) \
    offsetof(struct weft_tcp_greeting, field), sizeof((struct weft_tcp_greeting *)0)->field
static const struct weft_tcp_step steps[] = {
    [WEFT_TCP_AWAITS_HELLO] = {MESSAGE(hello), say_challenge},
    [WEFT_TCP_AWAITS_CHALLENGE] = {MESSAGE(challenge), say_proof},
    [WEFT_TCP_AWAITS_PROOF] = {MESSAGE(proof), say_welcome},
    [WEFT_TCP_AWAITS_WELCOME] = {MESSAGE(welcome), take_welcome},
};
#undef MESSAGE

/* Reads from the awaited message. Returns false if the connection is useless. */
static bool hear(struct weft_tcp_connection *connection) {
    struct weft_tcp_greeting *greeting = &connection->greeting;
    const struct weft_tcp_step *step = &steps[connection->stage];
    ssize_t got = recv(connection->socket, (char *)greeting + step->at + greeting->have,
                       step->bytes - greeting->have, 0);
    if (got <= 0)
        return got < 0 && (errno == EAGAIN || errno == EINTR);
    greeting->have += (size_t)got;
    return greeting->have < step->bytes || step->done(connection);
}

/* --- Calling --------------------------------------------------------------------------------- */

static int socket_open(const struct weft_engine_end *end) {
    struct sockaddr_in6 from = end->own.at;
    int on = 1;
    from.sin6_port = 0;
    int fd = weft_descriptor_keep(
        socket(from.sin6_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (fd < 0)
        return -errno;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
    if (bind(fd, (struct sockaddr *)&from,
             (socklen_t)weft_network_bytes((struct sockaddr *)&from)) == 0)
        return fd;
    int error = -errno;
    weft_descriptor_close(fd);
    return error;
}

/* A link-local address is relative to a network link of this host, which has to be known. */
static bool peer_can_be_reached(const struct sockaddr_in6 *own, const struct sockaddr_in6 *peer) {
    bool link_local = peer->sin6_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&peer->sin6_addr);
    return own->sin6_family == peer->sin6_family && (!link_local || own->sin6_scope_id);
}

/* Binds the address at which this end is called, so that both directions use one path. */
int weft_tcp_greeting_call(struct weft_engine_link *link) {
    struct weft_engine_end *end = link->end;
    struct sockaddr_in6 to = link->peer.at;
    if (!peer_can_be_reached(&end->own.at, &to))
        return -EAFNOSUPPORT;
    int fd = socket_open(end);
    if (fd < 0)
        return fd;
    if (to.sin6_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&to.sin6_addr))
        to.sin6_scope_id = end->own.at.sin6_scope_id;
    if (connect(fd, (struct sockaddr *)&to,
                (socklen_t)weft_network_bytes((struct sockaddr *)&to)) != 0 &&
        errno != EINPROGRESS) {
        int error = -errno;
        weft_descriptor_close(fd);
        return error;
    }
    struct weft_tcp_connection *call = weft_tcp_connection_make(end, fd, true, EPOLLOUT);
    if (!call)
        return -ENOMEM;
    call->link = link;
    link->tries++;
    greeting_add(call);
    return 0;
}

/* Handles a call that failed. Calls again if the other side had no place for it. */
static void call_fail(struct weft_tcp_connection *connection, int error) {
    struct weft_engine_link *link = connection->link;
    hang_up(connection);
    if (link->out || link->error)
        return;
    if (!error)
        error = link->tries < TRIES_MAX ? weft_tcp_greeting_call(link) : -ECONNABORTED;
    link->error = error;
    link->end->moved++;
}

void weft_tcp_greeting_go_on(struct weft_tcp_connection *connection) {
    int error = 0;
    if (connection->stage == WEFT_TCP_CONNECTING
            ? is_connected(connection, &error) && say_hello(connection)
            : hear(connection))
        return;
    if (connection->made)
        call_fail(connection, -error);
    else
        hang_up(connection);
}

/* --- Being called ---------------------------------------------------------------------------- */

/* If this process has no descriptors left, closes the oldest stranger's connection. */
static void accept_failed(struct weft_engine_end *end, int error) {
    struct weft_tcp_connection *oldest = oldest_stranger(end);
    if (error != EMFILE && error != ENFILE)
        return;
    if (oldest) {
        hang_up(oldest);
        return;
    }
    epoll_ctl(end->epoll, EPOLL_CTL_DEL, end->listener, NULL);
    end->error = -error;
}

void weft_tcp_greeting_accept(struct weft_engine_end *end) {
    for (int i = 0; i < ACCEPTS_MAX; i++) {
        int on = 1, fd = weft_descriptor_keep(
                        accept4(end->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC));
        if (fd < 0) {
            if (i == 0) /* for later calls the queue may just be empty */
                accept_failed(end, errno);
            return;
        }
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        struct weft_tcp_connection *call = weft_tcp_connection_make(end, fd, false, EPOLLIN);
        if (!call)
            return;
        if (end->nstrangers == STRANGERS_MAX)
            hang_up(oldest_stranger(end));
        call->stage = WEFT_TCP_AWAITS_HELLO;
        call->since_ns = weft_clock_ns();
        greeting_add(call);
    }
}
