/* SPDX-License-Identifier: BSD-3-Clause */
/* A letter is written from where it lies, at once. What the kernel has no room for is kept, and as
 * long as it is there no other letter is taken: so a connection keeps one at most.
 *
 * Reading is into the end's room, as much as has come, and letters are delivered from there. Of one
 * that is cut the beginning is kept, and the next read goes on behind it and then in the room: so a
 * letter is copied once, but for a beginning. */
#include "tcp/connection.h"
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    HEAD_BYTES = offsetof(struct weft_tcp_frame, letter),
    FREE_MAX = 8, /* parts that wait for letters */
};

static size_t frame_bytes(size_t letter_bytes) {
    return (HEAD_BYTES + letter_bytes + WEFT_ENGINE_ALIGNMENT - 1) &
           ~(size_t)(WEFT_ENGINE_ALIGNMENT - 1);
}

/* --- Parts of frames ------------------------------------------------------------------------- */

static struct weft_tcp_part *part_take(struct weft_engine_end *end) {
    struct weft_tcp_part *part = end->free;
    if (part) {
        end->free = part->next;
        end->nfree--;
    } else {
        part = malloc(sizeof *part);
    }
    if (part)
        part->from = part->to = 0;
    return part;
}

/* Many links that were busy at once leave more than will be needed again. */
static void part_give_back(struct weft_engine_end *end, struct weft_tcp_part *part) {
    if (!part || end->nfree >= FREE_MAX) {
        free(part);
        return;
    }
    part->next = end->free;
    end->free = part;
    end->nfree++;
}

/* --- Beginning and end ----------------------------------------------------------------------- */

struct weft_tcp_connection *weft_tcp_connection_make(struct weft_engine_end *end, int socket,
                                                     bool made, uint32_t events) {
    struct weft_tcp_connection *connection = calloc(1, sizeof *connection);
    struct epoll_event watch = {.events = events, .data.ptr = connection};
    if (connection && epoll_ctl(end->epoll, EPOLL_CTL_ADD, socket, &watch) == 0) {
        connection->end = end;
        connection->socket = socket;
        connection->made = made;
        connection->events = events;
        return connection;
    }
    free(connection);
    close(socket);
    return NULL;
}

void weft_tcp_connection_watch(struct weft_tcp_connection *connection, uint32_t events) {
    struct epoll_event watch = {.events = events, .data.ptr = connection};
    if (connection->events == events || connection->socket < 0)
        return;
    connection->events = events;
    epoll_ctl(connection->end->epoll, EPOLL_CTL_MOD, connection->socket, &watch);
}

/* It is taken out of the epoll first: closing does that alone where no forked child has the socket,
 * too. */
static void connection_close(struct weft_tcp_connection *connection) {
    struct weft_engine_end *end = connection->end;
    if (connection->socket < 0)
        return;
    epoll_ctl(end->epoll, EPOLL_CTL_DEL, connection->socket, NULL);
    close(connection->socket);
    connection->socket = -1;
    part_give_back(end, connection->in);
    part_give_back(end, connection->out);
    connection->in = connection->out = NULL;
    if (end->last == connection)
        end->last = NULL;
}

void weft_tcp_connection_fail(struct weft_tcp_connection *connection, int error) {
    struct weft_engine_link *link = connection->link;
    connection_close(connection);
    if (link && !link->error)
        link->error = error;
}

void weft_tcp_connection_free(struct weft_tcp_connection *connection) {
    connection_close(connection);
    free(connection);
}

/* --- Sending --------------------------------------------------------------------------------- */

static bool is_for_now(int error) {
    return error == EAGAIN || error == EINTR || error == ENOBUFS || error == ENOMEM;
}

bool weft_tcp_connection_flush(struct weft_tcp_connection *connection) {
    struct weft_tcp_part *part = connection->out;
    if (!part)
        return true;
    const char *frame = (const char *)&part->frame;
    ssize_t sent =
        send(connection->socket, frame + part->from, part->to - part->from, MSG_NOSIGNAL);
    if (sent < 0 && !is_for_now(errno))
        weft_tcp_connection_fail(connection, -errno);
    if (sent < 0)
        return false;
    part->from += (size_t)sent;
    if (part->from < part->to)
        return false;
    part_give_back(connection->end, part);
    connection->out = NULL;
    return true;
}

/* Of pieces whose first `sent` bytes have gone, the rest. */
static int keep_rest(struct weft_tcp_connection *connection, const struct iovec *pieces,
                     int npieces, size_t sent) {
    struct weft_tcp_part *part = part_take(connection->end);
    if (!part) {
        weft_tcp_connection_fail(connection, -ENOMEM); /* half of a letter has gone */
        return -ENOMEM;
    }
    char *to = (char *)&part->frame;
    for (int i = 0; i < npieces; i++) {
        size_t skipped = sent < pieces[i].iov_len ? sent : pieces[i].iov_len;
        size_t bytes = pieces[i].iov_len - skipped;
        sent -= skipped;
        if (bytes)
            memcpy(to + part->to, (const char *)pieces[i].iov_base + skipped, bytes);
        part->to += bytes;
    }
    connection->out = part;
    weft_tcp_connection_watch(connection, EPOLLIN | EPOLLOUT);
    return 0;
}

int weft_tcp_connection_send(struct weft_tcp_connection *connection, const struct iovec *parts,
                             int nparts) {
    static const char nothing[WEFT_ENGINE_ALIGNMENT];
    struct iovec pieces[WEFT_ENGINE_LETTER_PARTS + 2];
    uint64_t bytes = 0;
    if (connection->out && !weft_tcp_connection_flush(connection))
        return connection->socket < 0 ? connection->link->error : -EAGAIN;
    for (int i = 0; i < nparts; i++) {
        pieces[i + 1] = parts[i];
        bytes += parts[i].iov_len;
    }
    size_t all = frame_bytes(bytes);
    pieces[0] = (struct iovec){&bytes, sizeof bytes};
    pieces[nparts + 1] = (struct iovec){(void *)nothing, all - HEAD_BYTES - bytes};
    struct msghdr message = {.msg_iov = pieces, .msg_iovlen = (size_t)nparts + 2};
    ssize_t sent = sendmsg(connection->socket, &message, MSG_NOSIGNAL);
    if (sent == (ssize_t)all)
        return 0;
    if (sent >= 0)
        return keep_rest(connection, pieces, nparts + 2, (size_t)sent);
    if (!is_for_now(errno)) {
        weft_tcp_connection_fail(connection, -errno);
        return connection->link->error;
    }
    weft_tcp_connection_watch(connection, EPOLLIN | EPOLLOUT);
    return -EAGAIN;
}

/* --- Reading --------------------------------------------------------------------------------- */

static void letter_deliver(struct weft_engine_end *end, const void *letter, size_t bytes) {
    assert((uintptr_t)letter % WEFT_ENGINE_ALIGNMENT == 0);
    end->moved++;
    end->options.deliver(end->options.context, letter, bytes);
}

/* How much of the kept frame has not come. Until its length is known: of that. */
static size_t part_misses(const struct weft_tcp_part *part) {
    size_t whole = part->to < HEAD_BYTES ? HEAD_BYTES : frame_bytes(part->frame.bytes);
    return whole - part->to;
}

/* Delivers the kept frame, if it is whole. */
static void part_deliver(struct weft_tcp_connection *connection) {
    struct weft_tcp_part *part = connection->in;
    if (part->to < HEAD_BYTES || part_misses(part) > 0)
        return;
    connection->in = NULL;
    letter_deliver(connection->end, part->frame.letter, part->frame.bytes);
    part_give_back(connection->end, part);
}

static void part_keep(struct weft_tcp_connection *connection, const void *bytes, size_t nbytes) {
    struct weft_tcp_part *part = part_take(connection->end);
    if (!part) {
        weft_tcp_connection_fail(connection, -ENOMEM);
        return;
    }
    memcpy(&part->frame, bytes, nbytes);
    part->to = nbytes;
    connection->in = part;
}

static bool length_is_possible(struct weft_tcp_connection *connection, uint64_t bytes) {
    if (bytes <= WEFT_TCP_LETTER_BYTES)
        return true;
    weft_tcp_connection_fail(connection, -EPROTO);
    return false;
}

/* Delivers what is whole in the room, and keeps the rest. The connection may end meanwhile, by a
 * letter that goes the other way; what has come by it is good all the same. */
static void room_deliver(struct weft_tcp_connection *connection, size_t left) {
    const unsigned char *at = connection->end->room;
    uint64_t bytes;
    while (left >= HEAD_BYTES) {
        memcpy(&bytes, at, sizeof bytes);
        if (!length_is_possible(connection, bytes))
            return;
        size_t whole = frame_bytes(bytes);
        if (left < whole)
            break;
        letter_deliver(connection->end, at + HEAD_BYTES, bytes);
        at += whole;
        left -= whole;
    }
    if (left > 0 && connection->socket >= 0)
        part_keep(connection, at, left);
}

/* What was read goes to the kept frame first. */
static void read_take(struct weft_tcp_connection *connection, size_t missed, size_t got) {
    struct weft_tcp_part *part = connection->in;
    size_t taken = got < missed ? got : missed;
    if (part) {
        part->to += taken;
        if (part->to < HEAD_BYTES || !length_is_possible(connection, part->frame.bytes))
            return;
        part_deliver(connection);
    }
    if (got > taken)
        room_deliver(connection, got - taken);
}

bool weft_tcp_connection_read(struct weft_tcp_connection *connection) {
    struct weft_tcp_part *part = connection->in;
    size_t missed = part ? part_misses(part) : 0;
    bool only_head = part && part->to < HEAD_BYTES;
    struct iovec into[] = {{part ? (char *)&part->frame + part->to : NULL, missed},
                           {connection->end->room, only_head ? 0 : WEFT_TCP_ROOM_BYTES}};
    ssize_t got = readv(connection->socket, into, 2);
    if (got > 0)
        read_take(connection, missed, (size_t)got);
    else if (got == 0 || !is_for_now(errno))
        weft_tcp_connection_fail(connection, got == 0 ? -ECONNRESET : -errno);
    return got > 0;
}
