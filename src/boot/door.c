/* SPDX-License-Identifier: BSD-3-Clause */
/* Guests stand in one list, the oldest first. One that has said nothing is a socket and no more;
 * with its first byte it gets a TLS connection. An epoll descriptor holds all sockets, and a timer
 * for the next moment at which somebody's time is over. */
#include "boot/door.h"
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
    GUESTS_A_TURN = 32, /* whose handshake goes on: about 0.2 ms each at worst */
    ACCEPTED_A_TURN = 32,
    FROM_BYTES = 80, /* [address%interface]:port */
    REST_MS = 50,
};

#define GUEST_NS (UINT64_C(5000) * WEFT_NS_PER_MS)
#define LINES_NS (UINT64_C(10000) * WEFT_NS_PER_MS)

enum refusal {
    REFUSED_SILENT,
    REFUSED_SLOW,
    REFUSED_CROWD,
    REFUSED_GONE,
    REFUSED_FOREIGN,
    REFUSED_KEY,
    REFUSED_TWICE,
    REFUSALS
};

struct guest {
    struct guest *older, *younger;
    struct weft_tls *tls; /* NULL: it has said nothing */
    int socket;           /* -1: this is no guest */
    bool shown;           /* a message of somebody with a key */
    uint64_t since_ns;
    char from[FROM_BYTES];
};

struct weft_door {
    struct weft_door_options options;
    int epoll, listening, timer;
    uint16_t port;
    struct guest *guests, *unused; /* all there is room for; those that are no guests now */
    struct guest *oldest, *youngest;
    int nspeaking;
    char (*in)[WEFT_TLS_IDENTITY_BYTES]; /* who has been let in */
    int nin;
    uint64_t rests_until_ns; /* accepts nobody: there were no descriptors for it */
    bool starved;            /* that has been said */
    struct {
        uint64_t said_ns, unsaid;
    } refused[REFUSALS];
};

/* `as`: the guest; the door itself, for the timer; NULL, for the port. */
static int descriptor_watch(struct weft_door *door, int operation, int fd, short events, void *as) {
    struct epoll_event event = {.events = (uint32_t)events, .data.ptr = as};
    return epoll_ctl(door->epoll, operation, fd, &event) < 0 ? -errno : 0;
}

/* --- Guests ----------------------------------------------------------------------------------- */

static void guest_add(struct weft_door *door, struct guest *guest) {
    guest->older = door->youngest;
    guest->younger = NULL;
    *(door->youngest ? &door->youngest->younger : &door->oldest) = guest;
    door->youngest = guest;
}

/* It is a guest no more; its connection is the caller's. */
static void guest_remove(struct weft_door *door, struct guest *guest) {
    *(guest->older ? &guest->older->younger : &door->oldest) = guest->younger;
    *(guest->younger ? &guest->younger->older : &door->youngest) = guest->older;
    door->nspeaking -= guest->tls != NULL;
    guest->tls = NULL;
    guest->socket = -1;
    guest->younger = door->unused;
    door->unused = guest;
}

static void guest_close(struct weft_door *door, struct guest *guest) {
    struct weft_tls *tls = guest->tls;
    int socket = guest->socket;
    guest_remove(door, guest);
    if (tls)
        weft_tls_close(tls);
    else
        close(socket);
}

static void guest_refuse(struct weft_door *door, struct guest *guest, enum refusal refusal,
                         const char *why) {
    uint64_t now_ns = weft_clock_ns(), said_ns = door->refused[refusal].said_ns;
    uint64_t unsaid = door->refused[refusal].unsaid;
    char more[64] = "";
    if (said_ns && now_ns - said_ns < LINES_NS) {
        door->refused[refusal].unsaid++;
    } else {
        if (unsaid)
            snprintf(more, sizeof more, "; so did %llu more before it", (unsigned long long)unsaid);
        weft_note("a connection from %s was refused: %s%s", guest->from, why, more);
        door->refused[refusal].said_ns = now_ns;
        door->refused[refusal].unsaid = 0;
    }
    guest_close(door, guest);
}

static void guests_expire(struct weft_door *door) {
    while (door->oldest && weft_clock_ns() - door->oldest->since_ns >= GUEST_NS) {
        struct guest *guest = door->oldest;
        if (guest->tls)
            guest_refuse(door, guest, REFUSED_SLOW, "its handshake has taken more than 5 s");
        else
            guest_refuse(door, guest, REFUSED_SILENT, "it has said nothing for 5 s");
    }
}

/* Makes room where strangers hold all of it: by the oldest of those that have said nothing, or have
 * said something and shown no key. */
static void guest_dismiss(struct weft_door *door, bool silent) {
    struct guest *last = NULL;
    for (struct guest *guest = door->oldest; guest; guest = guest->younger) {
        if (silent != !guest->tls)
            continue;
        last = last ? last : guest;
        if (!guest->shown) {
            last = guest;
            break;
        }
    }
    if (last)
        guest_refuse(door, last, REFUSED_CROWD, "others came and it had shown no key yet");
}

/* --- Handshakes ------------------------------------------------------------------------------- */

static bool identity_is_in(const struct weft_door *door, const char *identity) {
    for (int i = 0; i < door->nin; i++)
        if (strcmp(door->in[i], identity) == 0)
            return true;
    return false;
}

static int identity_add(struct weft_door *door, const char *identity) {
    void *in = realloc(door->in, (size_t)(door->nin + 1) * sizeof *door->in);
    if (!in)
        return -ENOMEM;
    door->in = in;
    snprintf(door->in[door->nin++], sizeof *door->in, "%s", identity);
    return 0;
}

static void guest_let_in(struct weft_door *door, struct guest *guest) {
    struct weft_tls *tls = guest->tls;
    const char *identity = weft_tls_peer(tls);
    char why[WEFT_TLS_IDENTITY_BYTES + 32];
    bool twice = identity_is_in(door, identity);
    if (twice || identity_add(door, identity) < 0) {
        snprintf(why, sizeof why, twice ? "\"%s\" is here already" : "no memory for \"%s\"",
                 identity);
        guest_refuse(door, guest, REFUSED_TWICE, why);
        return;
    }
    epoll_ctl(door->epoll, EPOLL_CTL_DEL, guest->socket, NULL);
    guest_remove(door, guest);
    door->options.take(door->options.owner, tls);
}

/* Its first byte has come. */
static int guest_begin(struct weft_door *door, struct guest *guest) {
    if (door->nspeaking == door->options.places)
        guest_dismiss(door, false);
    int error =
        weft_tls_accept(&guest->tls, guest->socket, door->options.key_of, door->options.owner);
    door->nspeaking += !error;
    return error;
}

static void guest_shake(struct weft_door *door, struct guest *guest) {
    static const enum refusal refusals[] = {
        [EACCES] = REFUSED_KEY, [EPROTO] = REFUSED_FOREIGN, [EPIPE] = REFUSED_GONE};
    int error = weft_tls_shake(guest->tls);
    if (error == 0) {
        guest_let_in(door, guest);
    } else if (error != -EAGAIN) {
        guest_refuse(door, guest, refusals[-error], weft_tls_why(guest->tls));
    } else {
        descriptor_watch(door, EPOLL_CTL_MOD, guest->socket, weft_tls_events(guest->tls), guest);
        guest->shown = weft_tls_claim(guest->tls)[0];
    }
}

/* One that says nothing and goes away, as a port scanner does, needs no TLS. */
static void guest_hear(struct weft_door *door, struct guest *guest) {
    char first;
    if (!guest->tls) {
        ssize_t got = recv(guest->socket, &first, 1, MSG_PEEK | MSG_DONTWAIT);
        if (got < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (got <= 0) {
            guest_refuse(door, guest, REFUSED_GONE, "it has closed the connection");
            return;
        }
        if (guest_begin(door, guest)) {
            guest_remove(door, guest);
            return;
        }
    }
    guest_shake(door, guest);
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

/* Accepts nobody for a moment. Those who have said nothing go, which gives back what they hold. */
static void door_rest(struct weft_door *door, int code) {
    if (!door->starved)
        weft_log("cannot let another host in (accept4): %s%s; trying again until it works",
                 strerror(code), weft_remedy(-code).text);
    door->starved = true;
    for (int i = 0; i < SILENT_MAX; i++)
        guest_dismiss(door, true);
    weft_machine_raise_descriptors();
    door->rests_until_ns = weft_clock_ns() + REST_MS * WEFT_NS_PER_MS;
    descriptor_watch(door, EPOLL_CTL_MOD, door->listening, 0, NULL);
}

static void door_wake(struct weft_door *door) {
    if (!door->rests_until_ns || weft_clock_ns() < door->rests_until_ns)
        return;
    door->rests_until_ns = 0;
    descriptor_watch(door, EPOLL_CTL_MOD, door->listening, POLLIN, NULL);
}

/* There is room always, once the oldest silent one has gone: not all guests can be speaking. A peer
 * of ours speaks at once, and is heard before another one comes. */
static void guest_come(struct weft_door *door, int socket, const struct sockaddr_storage *address,
                       socklen_t bytes) {
    if (!door->unused)
        guest_dismiss(door, true);
    struct guest *guest = door->unused;
    door->unused = guest->younger;
    *guest = (struct guest){.socket = socket, .since_ns = weft_clock_ns()};
    address_write(guest->from, address, bytes);
    guest_add(door, guest);
    int error = descriptor_watch(door, EPOLL_CTL_ADD, socket, POLLIN, guest);
    if (error)
        guest_refuse(door, guest, REFUSED_CROWD, strerror(-error));
    else
        guest_hear(door, guest);
}

/* Errors of accept(2) that are those of one connection only are passed over. */
static void guests_accept(struct weft_door *door) {
    for (int come = 0; come < ACCEPTED_A_TURN; come++) {
        struct sockaddr_storage address;
        socklen_t bytes = sizeof address;
        int socket = accept4(door->listening, (struct sockaddr *)&address, &bytes,
                             SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (socket >= 0) {
            guest_come(door, socket, &address, bytes);
        } else if (errno == EAGAIN) {
            return;
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
            door_rest(door, errno);
            return;
        }
    }
}

static void timer_set(const struct weft_door *door) {
    uint64_t next_ns = door->oldest ? door->oldest->since_ns + GUEST_NS : door->rests_until_ns;
    if (door->rests_until_ns && door->rests_until_ns < next_ns)
        next_ns = door->rests_until_ns;
    struct itimerspec when = {.it_value = {(time_t)(next_ns / 1000000000), next_ns % 1000000000}};
    timerfd_settime(door->timer, TFD_TIMER_ABSTIME, &when, NULL);
}

void weft_door_turn(struct weft_door *door) {
    struct epoll_event events[GUESTS_A_TURN];
    int count = epoll_wait(door->epoll, events, GUESTS_A_TURN, 0);
    bool called = false;
    for (int i = 0; i < count; i++) {
        struct guest *guest = events[i].data.ptr;
        if (!guest)
            called = true;
        else if (events[i].data.ptr != door && guest->socket >= 0) /* not dismissed in this turn */
            guest_hear(door, guest);
    }
    guests_expire(door);
    door_wake(door);
    if (called)
        guests_accept(door);
    timer_set(door);
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

/* Both families by one socket, or IPv4 alone where the other one is switched off. */
static int port_take(void) {
    struct sockaddr_in6 any6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_ANY_INIT};
    struct sockaddr_in any4 = {.sin_family = AF_INET};
    int listening = port_bind(AF_INET6, (struct sockaddr *)&any6, sizeof any6);
    return listening >= 0 ? listening : port_bind(AF_INET, (struct sockaddr *)&any4, sizeof any4);
}

/* Both families have the port at the same place. */
static uint16_t port_number(int listening) {
    struct sockaddr_in6 address = {0};
    socklen_t bytes = sizeof address;
    getsockname(listening, (struct sockaddr *)&address, &bytes);
    return ntohs(address.sin6_port);
}

int weft_door_reserve(uint16_t *port) {
    int taken = port_take();
    if (taken >= 0)
        *port = port_number(taken);
    return taken;
}

static int descriptors_open(struct weft_door *door) {
    if (door->listening < 0 && (door->listening = port_take()) < 0)
        return door->listening;
    if (listen(door->listening, SOMAXCONN) < 0)
        return -errno;
    door->port = port_number(door->listening);
    if ((door->epoll = epoll_create1(EPOLL_CLOEXEC)) < 0 ||
        (door->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)) < 0)
        return -errno;
    int error = descriptor_watch(door, EPOLL_CTL_ADD, door->listening, POLLIN, NULL);
    return error ? error : descriptor_watch(door, EPOLL_CTL_ADD, door->timer, POLLIN, door);
}

static int door_make(struct weft_door **made, const struct weft_door_options *options) {
    int places = options->places + SILENT_MAX;
    int reserved = options->reserved ? *options->reserved : -1;
    struct weft_door *door = calloc(1, sizeof *door);
    struct guest *guests = calloc((size_t)places, sizeof *guests);
    if (!door || !guests) {
        free(door);
        free(guests);
        return -ENOMEM;
    }
    *door = (struct weft_door){
        .options = *options, .epoll = -1, .listening = reserved, .timer = -1, .guests = guests};
    for (int i = places - 1; i >= 0; i--) {
        guests[i] = (struct guest){.socket = -1, .younger = door->unused};
        door->unused = &guests[i];
    }
    *made = door;
    return descriptors_open(door);
}

int weft_door_open(struct weft_door **opened, const struct weft_door_options *options) {
    struct weft_door *door = NULL;
    int error = weft_tls_load(), made = error ? error : door_make(&door, options);
    if (made == 0) {
        *opened = door;
        return 0;
    }
    if (error == 0)
        weft_log("cannot listen for other hosts (socket, listen): %s%s", strerror(-made),
                 weft_remedy(made).text);
    if (!door && options->reserved)
        close(*options->reserved);
    weft_door_close(door);
    return made;
}

void weft_door_close(struct weft_door *door) {
    uint64_t unsaid = 0;
    if (!door)
        return;
    while (door->oldest)
        guest_close(door, door->oldest);
    for (int i = 0; i < REFUSALS; i++)
        unsaid += door->refused[i].unsaid;
    if (unsaid)
        weft_note("%llu more connections were refused for such reasons",
                  (unsigned long long)unsaid);
    if (door->listening >= 0)
        shutdown(door->listening, SHUT_RDWR); /* a forked child may have the socket, too */
    int descriptors[] = {door->listening, door->timer, door->epoll};
    for (int i = 0; i < 3; i++)
        if (descriptors[i] >= 0)
            close(descriptors[i]);
    free(door->in);
    free(door->guests);
    free(door);
}

uint16_t weft_door_port(const struct weft_door *door) {
    return door->port;
}

int weft_door_descriptor(const struct weft_door *door) {
    return door->epoll;
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

int weft_door_connect(const char *address, uint16_t port, int wait_ms) {
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
