/* SPDX-License-Identifier: BSD-3-Clause */
/* A message is sent by one system call: a frame of up to 512 bytes from a copy on the stack, a
 * longer one from the caller's memory. If the kernel has no room for all of it, the rest is copied,
 * and the connection accepts no other message until that is sent: so a connection keeps one partial
 * message at most.
 *
 * Reading fills the end's buffer `room` with all available data, and messages are delivered from
 * there. The beginning of an incomplete message is copied to a part; the next read continues after
 * it and then in the buffer. So a message is copied once, except for such a beginning. */
#include "tcp/connection.h"
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/descriptor.h"

enum {
    LENGTH_BYTES = offsetof(struct weft_tcp_frame, message),
    FREE_MAX = 8,      /* free parts that are kept */
    SHORT_BYTES = 512, /* longest frame that is copied into one piece */
};

static size_t frame_bytes(size_t message_bytes) {
    return (LENGTH_BYTES + message_bytes + WEFT_ENGINE_ALIGNMENT - 1) &
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

/* Frees surplus parts: many links that are busy at once use more than are needed later. */
static void part_give_back(struct weft_engine_end *end, struct weft_tcp_part *part) {
    if (!part || end->nfree >= FREE_MAX) {
        free(part);
        return;
    }
    part->next = end->free;
    end->free = part;
    end->nfree++;
}

/* --- Creation and end ----------------------------------------------------------------------- */

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
    weft_descriptor_close(socket);
    return NULL;
}

void weft_tcp_connection_watch(struct weft_tcp_connection *connection, uint32_t events) {
    struct epoll_event watch = {.events = events, .data.ptr = connection};
    if (connection->events == events || connection->socket < 0)
        return;
    connection->events = events;
    epoll_ctl(connection->end->epoll, EPOLL_CTL_MOD, connection->socket, &watch);
}

/* Removes the socket from the epoll first: closing does that only if no forked child has the
 * socket, too. */
static void connection_close(struct weft_tcp_connection *connection) {
    struct weft_engine_end *end = connection->end;
    if (connection->socket < 0)
        return;
    if (end->spoken == connection)
        end->spoken = NULL;
    epoll_ctl(end->epoll, EPOLL_CTL_DEL, connection->socket, NULL);
    weft_descriptor_close(connection->socket);
    connection->socket = -1;
    part_give_back(end, connection->incoming);
    part_give_back(end, connection->unsent);
    connection->incoming = connection->unsent = NULL;
}

/* Ends the connection, and stores the error in its link if that has none yet. The structure stays
 * valid. */
static void connection_fail(struct weft_tcp_connection *connection, int error) {
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
    struct weft_tcp_part *part = connection->unsent;
    if (!part)
        return true;
    const char *frame = (const char *)&part->frame;
    ssize_t sent =
        send(connection->socket, frame + part->from, part->to - part->from, MSG_NOSIGNAL);
    if (sent < 0 && !is_for_now(errno))
        connection_fail(connection, -errno);
    if (sent < 0)
        return false;
    part->from += (size_t)sent;
    if (part->from < part->to)
        return false;
    part_give_back(connection->end, part);
    connection->unsent = NULL;
    return true;
}

/* A frame as the pieces that it consists of. */
struct weft_tcp_pieces {
    struct iovec of[WEFT_ENGINE_MESSAGE_PARTS + 2];
    int count;
    uint64_t message_bytes;
    size_t bytes;
};

static void pieces_make(struct weft_tcp_pieces *pieces, const struct iovec *parts, int nparts) {
    static const char nothing[WEFT_ENGINE_ALIGNMENT];
    pieces->message_bytes = 0;
    pieces->count = 1;
    for (int i = 0; i < nparts; i++) {
        if (parts[i].iov_len)
            pieces->of[pieces->count++] = parts[i];
        pieces->message_bytes += parts[i].iov_len;
    }
    pieces->bytes = frame_bytes(pieces->message_bytes);
    pieces->of[0] = (struct iovec){&pieces->message_bytes, LENGTH_BYTES};
    size_t rest = pieces->bytes - LENGTH_BYTES - pieces->message_bytes;
    if (rest)
        pieces->of[pieces->count++] = (struct iovec){(void *)(uintptr_t)nothing, rest};
}

/* Copies everything after the first `skipped` bytes. */
static void pieces_copy(const struct weft_tcp_pieces *pieces, size_t skipped, char *to) {
    for (int i = 0; i < pieces->count; i++) {
        const struct iovec *piece = &pieces->of[i];
        size_t skips = skipped < piece->iov_len ? skipped : piece->iov_len;
        if (piece->iov_len > skips) /* an empty piece may have no address */
            memcpy(to, (const char *)piece->iov_base + skips, piece->iov_len - skips);
        to += piece->iov_len - skips;
        skipped -= skips;
    }
}

/* Returns a part with the rest of a frame whose first `skipped` bytes are sent, or NULL if there is
 * no memory. */
static struct weft_tcp_part *rest_copy(struct weft_engine_end *end,
                                       const struct weft_tcp_pieces *pieces, size_t skipped) {
    struct weft_tcp_part *part = part_take(end);
    if (part) {
        pieces_copy(pieces, skipped, (char *)&part->frame);
        part->to = pieces->bytes - skipped;
    }
    return part;
}

struct weft_tcp_part *weft_tcp_part_make(struct weft_engine_end *end, const struct iovec *parts,
                                         int nparts) {
    struct weft_tcp_pieces pieces;
    pieces_make(&pieces, parts, nparts);
    return rest_copy(end, &pieces, 0);
}

/* Copies a short frame into one piece, which costs the kernel less than several. */
static ssize_t pieces_send(int socket, const struct weft_tcp_pieces *pieces) {
    char text[SHORT_BYTES];
    struct msghdr message = {.msg_iov = (struct iovec *)(uintptr_t)pieces->of,
                             .msg_iovlen = (size_t)pieces->count};
    if (pieces->bytes > sizeof text)
        return sendmsg(socket, &message, MSG_NOSIGNAL);
    pieces_copy(pieces, 0, text);
    return send(socket, text, pieces->bytes, MSG_NOSIGNAL);
}

int weft_tcp_connection_send(struct weft_tcp_connection *connection, const struct iovec *parts,
                             int nparts) {
    struct weft_tcp_pieces pieces;
    if (connection->unsent && !weft_tcp_connection_flush(connection))
        return connection->socket < 0 ? connection->link->error : -EAGAIN;
    pieces_make(&pieces, parts, nparts);
    ssize_t sent = pieces_send(connection->socket, &pieces);
    if (sent == (ssize_t)pieces.bytes) {
        connection->end->spoken = connection;
        return 0;
    }
    int error = sent < 0 ? -errno : 0;
    if (sent < 0 && is_for_now(errno)) {
        weft_tcp_connection_watch(connection, EPOLLIN | EPOLLOUT);
        return -EAGAIN;
    }
    if (!error && !(connection->unsent = rest_copy(connection->end, &pieces, (size_t)sent)))
        error = -ENOMEM; /* one half of a message has been sent */
    if (error)
        connection_fail(connection, error);
    else
        weft_tcp_connection_watch(connection, EPOLLIN | EPOLLOUT);
    return error;
}

/* --- Reading --------------------------------------------------------------------------------- */

static void message_deliver(struct weft_engine_end *end, const void *message, size_t bytes) {
    assert((uintptr_t)message % WEFT_ENGINE_ALIGNMENT == 0);
    end->moved++;
    end->options.deliver(end->options.context, message, bytes);
}

/* Returns the number of bytes that the kept frame still lacks. While its length is unknown, counts
 * the length field only. */
static size_t part_misses(const struct weft_tcp_part *part) {
    size_t whole = part->to < LENGTH_BYTES ? LENGTH_BYTES : frame_bytes(part->frame.bytes);
    return whole - part->to;
}

/* Delivers the kept frame if it is complete. */
static void part_deliver(struct weft_tcp_connection *connection) {
    struct weft_tcp_part *part = connection->incoming;
    if (part->to < LENGTH_BYTES || part_misses(part) > 0)
        return;
    connection->incoming = NULL;
    message_deliver(connection->end, part->frame.message, part->frame.bytes);
    part_give_back(connection->end, part);
}

static void part_keep(struct weft_tcp_connection *connection, const void *bytes, size_t nbytes) {
    struct weft_tcp_part *part = part_take(connection->end);
    if (!part) {
        connection_fail(connection, -ENOMEM);
        return;
    }
    memcpy(&part->frame, bytes, nbytes);
    part->to = nbytes;
    connection->incoming = part;
}

static bool length_is_possible(struct weft_tcp_connection *connection, uint64_t bytes) {
    if (bytes <= WEFT_TCP_MESSAGE_BYTES)
        return true;
    connection_fail(connection, -EPROTO);
    return false;
}

/* Delivers the complete messages in the buffer, and keeps the rest. Delivery may send on this
 * connection and so end it; the messages read before are delivered all the same. */
static void room_deliver(struct weft_tcp_connection *connection, size_t left) {
    const unsigned char *at = connection->end->room;
    uint64_t bytes;
    while (left >= LENGTH_BYTES) {
        memcpy(&bytes, at, sizeof bytes);
        if (!length_is_possible(connection, bytes))
            return;
        size_t whole = frame_bytes(bytes);
        if (left < whole)
            break;
        message_deliver(connection->end, at + LENGTH_BYTES, bytes);
        at += whole;
        left -= whole;
    }
    if (left > 0 && connection->socket >= 0)
        part_keep(connection, at, left);
}

/* Gives the bytes read to the kept frame first. */
static void read_take(struct weft_tcp_connection *connection, size_t missed, size_t got) {
    struct weft_tcp_part *part = connection->incoming;
    size_t taken = got < missed ? got : missed;
    if (part) {
        part->to += taken;
        if (part->to < LENGTH_BYTES || !length_is_possible(connection, part->frame.bytes))
            return;
        part_deliver(connection);
    }
    if (got > taken)
        room_deliver(connection, got - taken);
}

/* Reads into the kept frame, if there is one, and then into the buffer. */
static ssize_t bytes_read(struct weft_tcp_connection *connection, size_t missed) {
    struct weft_tcp_part *part = connection->incoming;
    struct weft_engine_end *end = connection->end;
    if (!part)
        return recv(connection->socket, end->room, sizeof end->room, 0);
    struct iovec into[] = {{(char *)&part->frame + part->to, missed},
                           {end->room, sizeof end->room}};
    return readv(connection->socket, into, part->to < LENGTH_BYTES ? 1 : 2);
}

bool weft_tcp_connection_read(struct weft_tcp_connection *connection) {
    size_t missed = connection->incoming ? part_misses(connection->incoming) : 0;
    ssize_t got = bytes_read(connection, missed);
    if (got > 0)
        read_take(connection, missed, (size_t)got);
    else if (got == 0 || !is_for_now(errno))
        connection_fail(connection, got == 0 ? -ECONNRESET : -errno);
    return got > 0;
}
