/* SPDX-License-Identifier: BSD-3-Clause */
/* The engine over TCP: each message is one frame in a connection (tcp/end.h).
 *
 * A poll asks the epoll. It does not read again and again from the connection that the next message
 * probably arrives on, although that would save a system call: a reader holds the socket's lock,
 * and an arriving packet would have to wait. Asking an epoll without events takes no lock. Only
 * directly after sending a message is its connection read first: if two PEs meet, as in a barrier,
 * the other one's message has arrived while this one was sent. The engine needs no thread: all work
 * is done in `progress`, and a sleeper waits on the epoll. */
#include "tcp/engine.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/descriptor.h"
#include "tcp/connection.h"
#include "tcp/greeting.h"
#include "tcp/listen.h"

enum {
    EVENTS_MAX = 16, /* handled by one poll */
    UNASKED_MAX = 8, /* polls in a row without asking the epoll */
};

_Static_assert(sizeof(struct weft_tcp_address) <= WEFT_ENGINE_ADDRESS_BYTES, "room");

/* --- Opening and abandoning ------------------------------------------------------------------ */

static void connections_free(struct weft_tcp_connection *connections) {
    for (struct weft_tcp_connection *next; connections; connections = next) {
        next = connections->next;
        weft_tcp_connection_free(connections);
    }
}

static void end_free(struct weft_engine_end *end) {
    connections_free(end->greeting);
    connections_free(end->connections);
    for (struct weft_engine_link *link = end->links, *next; link; link = next) {
        next = link->next;
        free(link->first);
        free(link);
    }
    for (struct weft_tcp_part *part = end->free, *next; part; part = next) {
        next = part->next;
        free(part);
    }
    weft_descriptor_close(end->listener);
    weft_descriptor_close(end->epoll);
    free(end);
}

static int end_open(struct weft_engine_end *end) {
    struct epoll_event knock = {.events = EPOLLIN};
    struct weft_tcp_address *own = &end->own;
    if (getrandom(own->name, sizeof own->name, 0) != sizeof own->name ||
        getrandom(own->secret, sizeof own->secret, 0) != sizeof own->secret)
        return -EIO;
    int error = weft_tcp_listen(end);
    if (error)
        return error;
    end->epoll = weft_descriptor_keep(epoll_create1(EPOLL_CLOEXEC));
    if (end->epoll < 0 || epoll_ctl(end->epoll, EPOLL_CTL_ADD, end->listener, &knock) != 0)
        return -errno;
    return 0;
}

static int engine_open(const struct weft_engine_options *options, struct weft_engine_end **result) {
    struct weft_engine_end *end = calloc(1, sizeof *end);
    if (!end)
        return -ENOMEM;
    end->options = *options;
    end->listener = end->epoll = -1;
    int error = end_open(end);
    if (error)
        end_free(end);
    else
        *result = end;
    return error;
}

static int engine_address(struct weft_engine_end *end, void *address, size_t *bytes) {
    size_t room = *bytes;
    *bytes = sizeof end->own;
    if (room < *bytes)
        return -ENOSPC;
    memcpy(address, &end->own, *bytes);
    return 0;
}

/* --- Links ----------------------------------------------------------------------------------- */

/* Uses a connection that the PE has made before. */
static bool link_adopt(struct weft_engine_link *link) {
    for (struct weft_tcp_connection *one = link->end->connections; one; one = one->next)
        if (!one->link && one->socket >= 0 &&
            memcmp(one->greeting.hello.name, link->peer.name, sizeof link->peer.name) == 0)
            weft_tcp_link_take(link, one);
    return link->out != NULL;
}

static int engine_connect(struct weft_engine_end *end, const void *address, size_t bytes,
                          struct weft_engine_link **result) {
    struct weft_engine_link *link = bytes == sizeof link->peer ? calloc(1, sizeof *link) : NULL;
    if (!link)
        return bytes == sizeof link->peer ? -ENOMEM : -EINVAL;
    link->end = end;
    memcpy(&link->peer, address, bytes);
    int error = link_adopt(link) ? 0 : weft_tcp_greeting_call(link);
    if (error) {
        free(link);
        return error;
    }
    link->next = end->links;
    end->links = link;
    *result = link;
    return 0;
}

/* Returns the connection to send on. After a partial message the link may change to the connection
 * on which both sides agree. */
static struct weft_tcp_connection *way_out(struct weft_engine_link *link) {
    if (link->better && !link->out->unsent) {
        link->out = link->better;
        link->better = NULL;
    }
    return link->out;
}

/* Accepts one message before there is a connection; the caller sees from missing acknowledgments
 * that it waits. */
static int message_wait(struct weft_engine_link *link, const struct iovec *parts, int nparts) {
    if (link->first)
        return -EAGAIN;
    link->first = weft_tcp_part_make(link->end, parts, nparts);
    return link->first ? 0 : -ENOMEM;
}

static int engine_message(struct weft_engine_link *link, const struct iovec *parts, int nparts) {
    int error = link->error ? link->error : link->end->error;
    if (error)
        return error;
    if (!link->out)
        return message_wait(link, parts, nparts);
    return weft_tcp_connection_send(way_out(link), parts, nparts);
}

/* --- Progress -------------------------------------------------------------------------------- */

/* Without unsent bytes, everything that has arrived is read before the connection's end is handled.
 * A failed send ends the connection at once. */
static void connection_serve(struct weft_tcp_connection *connection, uint32_t events) {
    struct weft_engine_end *end = connection->end;
    if (connection->stage != WEFT_TCP_OPEN) {
        weft_tcp_greeting_go_on(connection);
        return;
    }
    if (events & EPOLLOUT && connection->socket >= 0 && weft_tcp_connection_flush(connection)) {
        weft_tcp_connection_watch(connection, EPOLLIN);
        end->moved++;
    }
    if (events & ~(uint32_t)EPOLLOUT && connection->socket >= 0 &&
        weft_tcp_connection_read(connection))
        end->moved++;
}

/* Reads from the connection on which a message has just been sent, but not so often in a row that
 * other PEs would have to wait. */
static bool answer_read(struct weft_engine_end *end) {
    struct weft_tcp_connection *spoken = end->spoken;
    end->spoken = NULL;
    if (spoken && end->unasked < UNASKED_MAX && weft_tcp_connection_read(spoken)) {
        end->unasked++;
        return true;
    }
    end->unasked = 0;
    return false;
}

/* Handles callers last: accepting may close connections that are in the list of events. */
static unsigned engine_progress(struct weft_engine_end *end) {
    struct epoll_event events[EVENTS_MAX];
    bool called = false;
    end->moved = 0;
    if (answer_read(end))
        return ++end->moved;
    int count = epoll_wait(end->epoll, events, EVENTS_MAX, 0);
    for (int i = 0; i < count; i++) {
        if (events[i].data.ptr)
            connection_serve(events[i].data.ptr, events[i].events);
        else
            called = true;
    }
    if (called)
        weft_tcp_greeting_accept(end);
    if (end->nstrangers)
        weft_tcp_greeting_dismiss(end);
    return end->moved;
}

static int engine_arm(struct weft_engine_end *end, int *descriptor) {
    *descriptor = end->epoll;
    return weft_descriptor_is_ours(end->listener) && weft_descriptor_is_ours(end->epoll) ? 0
                                                                                         : -EBADF;
}

/* --- Description ----------------------------------------------------------------------------- */

static uint32_t engine_abilities(struct weft_engine_link *link) {
    (void)link;
    return 0;
}

static unsigned engine_threads(struct weft_engine_end *end) {
    (void)end;
    return 0;
}

static void engine_describe(struct weft_engine_end *end, char *text, size_t bytes) {
    char address[INET6_ADDRSTRLEN];
    if (!end) {
        snprintf(text, bytes, "TCP, which needs no library");
        return;
    }
    weft_network_print(address, sizeof address, (const struct sockaddr *)&end->own.at);
    snprintf(text, bytes, "TCP on %s (%s), for PEs of the job alone; not encrypted", end->interface,
             address);
}

static int engine_where(struct weft_engine_end *end, struct sockaddr_storage *address) {
    memcpy(address, &end->own.at, sizeof end->own.at);
    return 0;
}

const struct weft_engine weft_tcp_engine = {
    .version = WEFT_ENGINE_VERSION,
    .name = "tcp",
    .message_bytes = WEFT_TCP_MESSAGE_BYTES,
    .open = engine_open,
    .address = engine_address,
    .connect = engine_connect,
    .message = engine_message,
    .progress = engine_progress,
    .arm = engine_arm,
    .abilities = engine_abilities,
    .threads = engine_threads,
    .describe = engine_describe,
    .abandon = end_free,
    .where = engine_where,
};
