/* SPDX-License-Identifier: BSD-3-Clause */
/* Pending connections are in one list, the oldest first. A connection that has sent nothing is only
 * a socket; with its first byte it gets a TLS state. An epoll descriptor holds all sockets, and a
 * timer for the time at which the oldest connection expires. */
#include "boot/tls_listener.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/log.h"
#include "base/machine.h"

enum {
    SILENT_MAX = 256,
    PENDING_A_TURN = 32, /* handshakes continued by a turn: about 0.2 ms each at worst */
    ACCEPTED_A_TURN = 32,
    FROM_BYTES = 80, /* [address%interface]:port */
    REST_MS = 50,
};

#define PENDING_NS (UINT64_C(5000) * WEFT_NS_PER_MS)
#define LINES_NS   (UINT64_C(10000) * WEFT_NS_PER_MS)

enum refusal {
    REFUSED_SILENT,
    REFUSED_SLOW,
    REFUSED_CROWD,
    REFUSED_GONE,
    REFUSED_PROTOCOL,
    REFUSED_KEY,
    REFUSED_TWICE,
    REFUSALS
};

struct pending_call {
    struct pending_call *older, *younger;
    struct weft_tls *tls; /* NULL: it has sent nothing */
    int socket;           /* -1: this entry is free */
    bool shown;           /* it has sent a message made with the key of an identity */
    uint64_t since_ns;
    char from[FROM_BYTES];
};

struct weft_tls_listener {
    struct weft_tls_listener_options options;
    int epoll, listening, timer;
    uint16_t port;
    struct pending_call *pending, *unused; /* all entries; the list of free ones */
    struct pending_call *oldest, *youngest;
    int nspeaking;
    char (*in)[WEFT_TLS_IDENTITY_BYTES]; /* the identities that were handed over */
    int nin;
    uint64_t rests_until_ns; /* accepts nothing until then: descriptors ran out */
    bool starved;            /* that has been logged */
    struct {
        uint64_t said_ns, unsaid;
    } refused[REFUSALS];
};

/* `as` is what epoll returns: the pending connection; the listener, for the timer; NULL: the port.
 */
static int descriptor_watch(struct weft_tls_listener *listener, int operation, int fd, short events,
                            void *as) {
    struct epoll_event event = {.events = (uint32_t)events, .data.ptr = as};
    return epoll_ctl(listener->epoll, operation, fd, &event) < 0 ? -errno : 0;
}

/* --- Pending connections --------------------------------------------------------------------- */

static void pending_add(struct weft_tls_listener *listener, struct pending_call *pending) {
    pending->older = listener->youngest;
    pending->younger = NULL;
    *(listener->youngest ? &listener->youngest->younger : &listener->oldest) = pending;
    listener->youngest = pending;
}

/* Frees the entry. The connection belongs to the caller. */
static void pending_remove(struct weft_tls_listener *listener, struct pending_call *pending) {
    *(pending->older ? &pending->older->younger : &listener->oldest) = pending->younger;
    *(pending->younger ? &pending->younger->older : &listener->youngest) = pending->older;
    listener->nspeaking -= pending->tls != NULL;
    pending->tls = NULL;
    pending->socket = -1;
    pending->younger = listener->unused;
    listener->unused = pending;
}

static void pending_close(struct weft_tls_listener *listener, struct pending_call *pending) {
    struct weft_tls *tls = pending->tls;
    int socket = pending->socket;
    pending_remove(listener, pending);
    if (tls)
        weft_tls_close(tls);
    else
        close(socket);
}

static void pending_refuse(struct weft_tls_listener *listener, struct pending_call *pending,
                           enum refusal refusal, const char *why) {
    uint64_t now_ns = weft_clock_ns(), said_ns = listener->refused[refusal].said_ns;
    uint64_t unsaid = listener->refused[refusal].unsaid;
    char more[64] = "";
    if (said_ns && now_ns - said_ns < LINES_NS) {
        listener->refused[refusal].unsaid++;
    } else {
        if (unsaid)
            snprintf(more, sizeof more, "; so did %llu more before it", (unsigned long long)unsaid);
        weft_note("a connection from %s was refused: %s%s", pending->from, why, more);
        listener->refused[refusal].said_ns = now_ns;
        listener->refused[refusal].unsaid = 0;
    }
    pending_close(listener, pending);
}

static void pending_expire(struct weft_tls_listener *listener) {
    while (listener->oldest && weft_clock_ns() - listener->oldest->since_ns >= PENDING_NS) {
        struct pending_call *pending = listener->oldest;
        if (pending->tls)
            pending_refuse(listener, pending, REFUSED_SLOW,
                           "its handshake has taken more than 5 s");
        else
            pending_refuse(listener, pending, REFUSED_SILENT, "it has sent nothing for 5 s");
    }
}

/* Refuses the oldest connection that has sent nothing, or the oldest in a handshake: preferably one
 * that has shown no key. Called to free an entry or, for silent ones, their descriptors. */
static void pending_dismiss(struct weft_tls_listener *listener, bool silent) {
    struct pending_call *last = NULL;
    for (struct pending_call *pending = listener->oldest; pending; pending = pending->younger) {
        if (silent != !pending->tls)
            continue;
        last = last ? last : pending;
        if (!pending->shown) {
            last = pending;
            break;
        }
    }
    if (last)
        pending_refuse(listener, last, REFUSED_CROWD, "others came and it had shown no key");
}

/* --- Handshakes ------------------------------------------------------------------------------- */

static bool identity_is_in(const struct weft_tls_listener *listener, const char *identity) {
    for (int i = 0; i < listener->nin; i++)
        if (strcmp(listener->in[i], identity) == 0)
            return true;
    return false;
}

static int identity_add(struct weft_tls_listener *listener, const char *identity) {
    void *in = realloc(listener->in, (size_t)(listener->nin + 1) * sizeof *listener->in);
    if (!in)
        return -ENOMEM;
    listener->in = in;
    snprintf(listener->in[listener->nin++], sizeof *listener->in, "%s", identity);
    return 0;
}

static void pending_let_in(struct weft_tls_listener *listener, struct pending_call *pending) {
    struct weft_tls *tls = pending->tls;
    const char *identity = weft_tls_peer(tls);
    char why[WEFT_TLS_IDENTITY_BYTES + 32];
    bool twice = identity_is_in(listener, identity);
    if (twice || identity_add(listener, identity) < 0) {
        snprintf(why, sizeof why, twice ? "\"%s\" is here already" : "no memory for \"%s\"",
                 identity);
        pending_refuse(listener, pending, REFUSED_TWICE, why);
        return;
    }
    epoll_ctl(listener->epoll, EPOLL_CTL_DEL, pending->socket, NULL);
    pending_remove(listener, pending);
    listener->options.take(listener->options.owner, tls);
}

/* Begins the handshake of a connection when its first byte has arrived. */
static int pending_begin(struct weft_tls_listener *listener, struct pending_call *pending) {
    if (listener->nspeaking == listener->options.places)
        pending_dismiss(listener, false);
    int error = weft_tls_accept(&pending->tls, pending->socket, listener->options.key_of,
                                listener->options.owner);
    listener->nspeaking += !error;
    return error;
}

static void pending_shake(struct weft_tls_listener *listener, struct pending_call *pending) {
    static const enum refusal refusals[] = {
        [EACCES] = REFUSED_KEY, [EPROTO] = REFUSED_PROTOCOL, [EPIPE] = REFUSED_GONE};
    int error = weft_tls_shake(pending->tls);
    if (error == 0) {
        pending_let_in(listener, pending);
    } else if (error != -EAGAIN) {
        pending_refuse(listener, pending, refusals[-error], weft_tls_why(pending->tls));
    } else {
        descriptor_watch(listener, EPOLL_CTL_MOD, pending->socket, weft_tls_events(pending->tls),
                         pending);
        pending->shown = weft_tls_claim(pending->tls)[0];
    }
}

/* Creates no TLS state for a connection that closes without a byte, as a port scanner's does. */
static void pending_hear(struct weft_tls_listener *listener, struct pending_call *pending) {
    char first;
    if (!pending->tls) {
        ssize_t got = recv(pending->socket, &first, 1, MSG_PEEK | MSG_DONTWAIT);
        if (got < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (got <= 0) {
            pending_refuse(listener, pending, REFUSED_GONE, "it has closed the connection");
            return;
        }
        if (pending_begin(listener, pending)) {
            pending_remove(listener, pending);
            return;
        }
    }
    pending_shake(listener, pending);
}

/* --- The port --------------------------------------------------------------------------------- */

static void address_write(char *text, const struct sockaddr_storage *address, socklen_t bytes) {
    static const char mapped[] = "::ffff:";
    enum { PREFIX = sizeof mapped - 1 };
    char host[FROM_BYTES - 16], port[8];
    if (getnameinfo((const struct sockaddr *)address, bytes, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        snprintf(text, FROM_BYTES, "somewhere");
    else if (strncmp(host, mapped, PREFIX) == 0)
        snprintf(text, FROM_BYTES, "%s:%s", host + PREFIX, port);
    else
        snprintf(text, FROM_BYTES, strchr(host, ':') ? "[%s]:%s" : "%s:%s", host, port);
}

/* Accepts nothing for a moment, and closes the connections that have sent nothing, to free their
 * descriptors. */
static void listener_rest(struct weft_tls_listener *listener, int code) {
    if (!listener->starved)
        weft_log("cannot let another host in (accept4): %s%s; trying again until it works",
                 strerror(code), weft_remedy(-code).text);
    listener->starved = true;
    for (int i = 0; i < SILENT_MAX; i++)
        pending_dismiss(listener, true);
    weft_machine_raise_descriptors();
    listener->rests_until_ns = weft_clock_ns() + REST_MS * WEFT_NS_PER_MS;
    descriptor_watch(listener, EPOLL_CTL_MOD, listener->listening, 0, NULL);
}

static void listener_wake(struct weft_tls_listener *listener) {
    if (!listener->rests_until_ns || weft_clock_ns() < listener->rests_until_ns)
        return;
    listener->rests_until_ns = 0;
    descriptor_watch(listener, EPOLL_CTL_MOD, listener->listening, POLLIN, NULL);
}

/* After the oldest silent connection is refused there is a free entry: fewer than all can be in
 * handshakes. A PE or daemon sends at once, and is read before another connection is accepted. */
static void pending_come(struct weft_tls_listener *listener, int socket,
                         const struct sockaddr_storage *address, socklen_t bytes) {
    if (!listener->unused)
        pending_dismiss(listener, true);
    struct pending_call *pending = listener->unused;
    listener->unused = pending->younger;
    *pending = (struct pending_call){.socket = socket, .since_ns = weft_clock_ns()};
    address_write(pending->from, address, bytes);
    pending_add(listener, pending);
    int error = descriptor_watch(listener, EPOLL_CTL_ADD, socket, POLLIN, pending);
    if (error)
        pending_refuse(listener, pending, REFUSED_CROWD, strerror(-error));
    else
        pending_hear(listener, pending);
}

/* Ignores errors of accept(2) that only concern one connection. */
static void pending_accept(struct weft_tls_listener *listener) {
    for (int come = 0; come < ACCEPTED_A_TURN; come++) {
        struct sockaddr_storage address;
        socklen_t bytes = sizeof address;
        int socket = accept4(listener->listening, (struct sockaddr *)&address, &bytes,
                             SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (socket >= 0) {
            pending_come(listener, socket, &address, bytes);
        } else if (errno == EAGAIN) {
            return;
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
            listener_rest(listener, errno);
            return;
        }
    }
}

static void timer_set(const struct weft_tls_listener *listener) {
    uint64_t next_ns =
        listener->oldest ? listener->oldest->since_ns + PENDING_NS : listener->rests_until_ns;
    if (listener->rests_until_ns && listener->rests_until_ns < next_ns)
        next_ns = listener->rests_until_ns;
    struct itimerspec when = {.it_value = {(time_t)(next_ns / 1000000000), next_ns % 1000000000}};
    timerfd_settime(listener->timer, TFD_TIMER_ABSTIME, &when, NULL);
}

void weft_tls_listener_turn(struct weft_tls_listener *listener) {
    struct epoll_event events[PENDING_A_TURN];
    int count = epoll_wait(listener->epoll, events, PENDING_A_TURN, 0);
    bool called = false;
    for (int i = 0; i < count; i++) {
        struct pending_call *pending = events[i].data.ptr;
        if (!pending)
            called = true;
        else if (events[i].data.ptr != listener &&
                 pending->socket >= 0) /* not dismissed in this turn */
            pending_hear(listener, pending);
    }
    pending_expire(listener);
    listener_wake(listener);
    if (called)
        pending_accept(listener);
    timer_set(listener);
}

/* --- Opening and closing ---------------------------------------------------------------------- */

static int port_bind(int family, const struct sockaddr *any, socklen_t bytes) {
    int listening = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (listening < 0)
        return -errno;
    if (family == AF_INET6)
        setsockopt(listening, IPPROTO_IPV6, IPV6_V6ONLY, &(int){0}, sizeof(int));
    if (bind(listening, any, bytes) == 0)
        return listening;
    int error = -errno;
    close(listening);
    return error;
}

/* One socket for both families, or for IPv4 only if IPv6 is disabled. */
static int port_take(void) {
    struct sockaddr_in6 any6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_ANY_INIT};
    struct sockaddr_in any4 = {.sin_family = AF_INET};
    int listening = port_bind(AF_INET6, (struct sockaddr *)&any6, sizeof any6);
    return listening >= 0 ? listening : port_bind(AF_INET, (struct sockaddr *)&any4, sizeof any4);
}

/* The port is at the same offset in addresses of both families. */
static uint16_t port_number(int listening) {
    struct sockaddr_in6 address = {0};
    socklen_t bytes = sizeof address;
    getsockname(listening, (struct sockaddr *)&address, &bytes);
    return ntohs(address.sin6_port);
}

int weft_tls_listener_reserve(uint16_t *port) {
    int taken = port_take();
    if (taken >= 0)
        *port = port_number(taken);
    return taken;
}

static int descriptors_open(struct weft_tls_listener *listener) {
    if (listener->listening < 0 && (listener->listening = port_take()) < 0)
        return listener->listening;
    if (listen(listener->listening, SOMAXCONN) < 0)
        return -errno;
    listener->port = port_number(listener->listening);
    if ((listener->epoll = epoll_create1(EPOLL_CLOEXEC)) < 0 ||
        (listener->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)) < 0)
        return -errno;
    int error = descriptor_watch(listener, EPOLL_CTL_ADD, listener->listening, POLLIN, NULL);
    return error ? error
                 : descriptor_watch(listener, EPOLL_CTL_ADD, listener->timer, POLLIN, listener);
}

static int listener_make(struct weft_tls_listener **made,
                         const struct weft_tls_listener_options *options) {
    int places = options->places + SILENT_MAX;
    int reserved = options->reserved ? *options->reserved : -1;
    struct weft_tls_listener *listener = calloc(1, sizeof *listener);
    struct pending_call *pending = calloc((size_t)places, sizeof *pending);
    if (!listener || !pending) {
        free(listener);
        free(pending);
        return -ENOMEM;
    }
    *listener = (struct weft_tls_listener){
        .options = *options, .epoll = -1, .listening = reserved, .timer = -1, .pending = pending};
    for (int i = places - 1; i >= 0; i--) {
        pending[i] = (struct pending_call){.socket = -1, .younger = listener->unused};
        listener->unused = &pending[i];
    }
    *made = listener;
    return descriptors_open(listener);
}

int weft_tls_listener_open(struct weft_tls_listener **opened,
                           const struct weft_tls_listener_options *options) {
    struct weft_tls_listener *listener = NULL;
    int error = weft_tls_load(), made = error ? error : listener_make(&listener, options);
    if (made == 0) {
        *opened = listener;
        return 0;
    }
    if (error == 0)
        weft_log("cannot listen for other hosts (socket, listen): %s%s", strerror(-made),
                 weft_remedy(made).text);
    if (!listener && options->reserved)
        close(*options->reserved);
    weft_tls_listener_close(listener);
    return made;
}

void weft_tls_listener_close(struct weft_tls_listener *listener) {
    uint64_t unsaid = 0;
    if (!listener)
        return;
    while (listener->oldest)
        pending_close(listener, listener->oldest);
    for (int i = 0; i < REFUSALS; i++)
        unsaid += listener->refused[i].unsaid;
    if (unsaid)
        weft_note("%llu more connections were refused for these reasons",
                  (unsigned long long)unsaid);
    if (listener->listening >= 0)
        shutdown(listener->listening, SHUT_RDWR); /* a forked child may have the socket, too */
    int descriptors[] = {listener->listening, listener->timer, listener->epoll};
    for (int i = 0; i < 3; i++)
        if (descriptors[i] >= 0)
            close(descriptors[i]);
    free(listener->in);
    free(listener->pending);
    free(listener);
}

uint16_t weft_tls_listener_port(const struct weft_tls_listener *listener) {
    return listener->port;
}

int weft_tls_listener_descriptor(const struct weft_tls_listener *listener) {
    return listener->epoll;
}

/* --- The other side --------------------------------------------------------------------------- */

static int connection_await(int fd, int wait_ms) {
    uint64_t until_ns = weft_clock_ns() + (uint64_t)wait_ms * WEFT_NS_PER_MS;
    struct pollfd poll_of = {.fd = fd, .events = POLLOUT};
    for (;;) {
        uint64_t now_ns = weft_clock_ns();
        int left_ms = now_ns < until_ns ? (int)((until_ns - now_ns) / WEFT_NS_PER_MS) + 1 : 0;
        int ready = poll(&poll_of, 1, left_ms);
        if (ready < 0 && errno != EINTR)
            return -errno;
        if (ready == 0 && left_ms == 0)
            return -ETIMEDOUT;
        if (ready > 0)
            break;
    }
    int code = 0;
    socklen_t bytes = sizeof code;
    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &bytes) < 0 ? -errno : -code;
}

int weft_tls_listener_connect(const char *address, uint16_t port, int wait_ms) {
    struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
                             .ai_socktype = SOCK_STREAM};
    struct addrinfo *found;
    char number[8];
    snprintf(number, sizeof number, "%u", (unsigned)port);
    if (getaddrinfo(address, number, &hints, &found) != 0)
        return -EINVAL;
    int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int error = fd < 0 ? -errno : 0;
    if (!error && connect(fd, found->ai_addr, found->ai_addrlen) < 0)
        error = errno == EINPROGRESS ? connection_await(fd, wait_ms) : -errno;
    freeaddrinfo(found);
    if (!error)
        return fd;
    if (fd >= 0)
        close(fd);
    return error;
}
