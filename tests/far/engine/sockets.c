/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections, each from a writer to a reader: the first message brings the ring's memfd, all
 * others are bells. The kernel chooses the listener's name, and other users' processes are
 * rejected. */
#include "engine.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

static int source_watch(struct weft_engine_end *end, struct source *source) {
    struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP, .data.ptr = source};
    return epoll_ctl(end->epoll, EPOLL_CTL_ADD, source->fd, &event) == 0 ? 0 : -errno;
}

static void source_close(struct source *source) {
    if (source->fd >= 0)
        close(source->fd); /* epoll forgets it */
    source->fd = -1;
}

static socklen_t address_fill(struct sockaddr_un *address, const char *name, size_t bytes) {
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(address->sun_path + 1, name, bytes);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + bytes);
}

static int listener_bind(struct weft_engine_end *end) {
    uint64_t drawn[2];
    if (getrandom(drawn, sizeof drawn, 0) != sizeof drawn)
        return -EIO;
    snprintf(end->name, sizeof end->name, "%016lx%016lx", (unsigned long)drawn[0],
             (unsigned long)drawn[1]);
    struct sockaddr_un address;
    socklen_t bytes = address_fill(&address, end->name, strlen(end->name));
    if (bind(end->listener.fd, (struct sockaddr *)&address, bytes) < 0 ||
        listen(end->listener.fd, SOMAXCONN) < 0)
        return -errno;
    return 0;
}

int sockets_open(struct weft_engine_end *end) {
    end->listener = (struct source){SOURCE_LISTENER, -1};
    end->timer = (struct source){SOURCE_TIMER, -1};
    end->epoll = epoll_create1(EPOLL_CLOEXEC);
    end->listener.fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    end->timer.fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (end->epoll < 0 || end->listener.fd < 0 || end->timer.fd < 0)
        return -errno;
    int error = listener_bind(end);
    if (error == 0)
        error = source_watch(end, &end->listener);
    return error < 0 ? error : source_watch(end, &end->timer);
}

void sockets_close(struct weft_engine_end *end) {
    source_close(&end->listener);
    source_close(&end->timer);
    if (end->epoll >= 0)
        close(end->epoll);
}

/* Sends the descriptor with a message of one byte. */
static int descriptor_send(int socket, int fd) {
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof fd)];
    } control = {.head = {CMSG_LEN(sizeof fd), SOL_SOCKET, SCM_RIGHTS}};
    memcpy(CMSG_DATA(&control.head), &fd, sizeof fd);
    struct iovec byte = {.iov_base = "", .iov_len = 1};
    struct msghdr message = {.msg_iov = &byte,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control.room};
    return sendmsg(socket, &message, MSG_NOSIGNAL) == 1 ? 0 : -errno;
}

static int ring_make(struct weft_engine_link *link, int *fd) {
    size_t bytes = message_ring_file_bytes((size_t)link->end->settings.ring);
    *fd = memfd_create("messages", MFD_CLOEXEC);
    if (*fd < 0 || ftruncate(*fd, (off_t)bytes) != 0)
        return -errno;
    return message_ring_map(&link->ring, *fd);
}

int sockets_connect(struct weft_engine_link *link, const void *name, size_t bytes) {
    struct sockaddr_un address;
    int ring_fd;
    if (bytes >= sizeof address.sun_path)
        return -EINVAL;
    link->source = (struct source){
        SOURCE_LINK, socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
    if (link->source.fd < 0 || connect(link->source.fd, (struct sockaddr *)&address,
                                       address_fill(&address, name, bytes)) < 0)
        return -errno;
    int error = ring_make(link, &ring_fd);
    if (error == 0)
        error = descriptor_send(link->source.fd, ring_fd);
    if (ring_fd >= 0)
        close(ring_fd);
    return error < 0 ? error : source_watch(link->end, &link->source);
}

/* A full socket already has a bell in it, and a socket without a peer needs none. */
void sockets_ring(struct weft_engine_end *end, int fd) {
    if (fd >= 0 && send(fd, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno != EAGAIN &&
        errno != EPIPE && errno != ECONNRESET)
        engine_fail(end, "cannot ring: %s", strerror(errno));
}

static bool is_own(int socket) {
    struct ucred peer;
    socklen_t bytes = sizeof peer;
    return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 && peer.uid == getuid();
}

static void connection_take(struct weft_engine_end *end) {
    int socket = accept4(end->listener.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (socket < 0 && errno != EAGAIN && errno != ECONNABORTED)
        engine_fail(end, "cannot accept a connection: %s", strerror(errno));
    if (socket < 0)
        return;
    struct inbound *inbound = calloc(1, sizeof *inbound);
    void *all = realloc(end->inbound, (end->ninbound + 1) * sizeof *end->inbound);
    if (!inbound || !all)
        engine_fail(end, "no memory for a connection");
    end->inbound = all;
    inbound->source = (struct source){SOURCE_INBOUND, socket};
    if (!is_own(socket)) {
        source_close(&inbound->source);
        free(inbound);
        return;
    }
    end->inbound[end->ninbound++] = inbound;
    if (source_watch(end, &inbound->source) < 0)
        engine_fail(end, "cannot watch a connection");
}

/* Reads all messages and maps the ring that the first one brings. Returns whether the peer is
 * there. */
static bool messages_take(struct weft_engine_end *end, struct source *source,
                          struct message_ring *ring) {
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int))];
    } control;
    char byte;
    struct iovec part = {&byte, 1};
    for (;;) {
        struct msghdr message = {.msg_iov = &part,
                                 .msg_iovlen = 1,
                                 .msg_control = &control,
                                 .msg_controllen = sizeof control.room};
        ssize_t n = recvmsg(source->fd, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 && errno == EAGAIN;
        struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        if (!head)
            continue;
        int fd;
        memcpy(&fd, CMSG_DATA(head), sizeof fd);
        if (ring->words || message_ring_map(ring, fd) < 0)
            engine_fail(end, "a connection brings no ring");
        close(fd);
    }
}

/* Returns whether there is room in a link that had none. */
static bool source_look(struct weft_engine_end *end, struct source *source) {
    struct inbound *inbound = (struct inbound *)source;
    struct weft_engine_link *link = (struct weft_engine_link *)source;
    uint64_t times;
    switch (source->kind) {
    case SOURCE_LISTENER:
        connection_take(end);
        break;
    case SOURCE_TIMER:
        if (read(source->fd, &times, sizeof times) < 0 && errno != EAGAIN)
            engine_fail(end, "cannot read the timer: %s", strerror(errno));
        break;
    case SOURCE_INBOUND:
        if (!messages_take(end, source, &inbound->ring))
            source_close(source); /* the messages it wrote before are still in the ring */
        break;
    case SOURCE_LINK:
        link->dead = !messages_take(end, source, &link->ring);
        if (link->dead)
            source_close(source);
        return true;
    }
    return false;
}

unsigned sockets_look(struct weft_engine_end *end) {
    struct epoll_event events[16];
    unsigned found = 0;
    int n;
    do {
        n = epoll_wait(end->epoll, events, 16, 0);
        for (int i = 0; i < n; i++)
            found += source_look(end, events[i].data.ptr);
    } while (n > 0);
    return found;
}

int sockets_set_timer(struct weft_engine_end *end, uint64_t at_ns) {
    struct itimerspec when = {.it_value = {.tv_sec = (time_t)(at_ns / 1000000000u),
                                           .tv_nsec = (long)(at_ns % 1000000000u)}};
    return timerfd_settime(end->timer.fd, TFD_TIMER_ABSTIME, &when, NULL) == 0 ? 0 : -errno;
}
