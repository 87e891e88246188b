/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the benchmarks without Weft: one TCP connection between two hosts, and their output.
 * Their arguments are the address of side 0, which listens, and the number of the own side, 0 or
 * 1. */
#ifndef BENCH_HOSTS_MEET_H
#define BENCH_HOSTS_MEET_H

#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <unistd.h>
#include "../far_rows.h"

static int me, peer; /* this side, and the socket to the other side */
static const char *library;

static void need(bool holds, const char *what) {
    if (holds)
        return;
    perror(what);
    exit(1);
}

static int socket_to(const struct addrinfo *to) {
    int one = 1, fd = socket(to->ai_family, SOCK_STREAM, 0);
    need(fd >= 0, "socket");
    if (me == 0) {
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
        need(bind(fd, to->ai_addr, to->ai_addrlen) == 0 && listen(fd, 1) == 0, "listen");
        int accepted = accept(fd, NULL, NULL);
        close(fd);
        return accepted;
    }
    if (connect(fd, to->ai_addr, to->ai_addrlen) < 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static void meet(char **arguments) {
    struct addrinfo *to, hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
    int one = 1;
    me = atoi(arguments[2]);
    need(getaddrinfo(arguments[1], "7177", &hints, &to) == 0, arguments[1]);
    for (int tries = 0; (peer = socket_to(to)) < 0 && tries < 200; tries++)
        usleep(20000); /* the other side may not listen yet */
    need(peer >= 0, "connect");
    setsockopt(peer, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    freeaddrinfo(to);
}

static void send_all(const void *data, size_t bytes) {
    for (const char *at = data; bytes;) {
        ssize_t sent = send(peer, at, bytes, MSG_NOSIGNAL);
        need(sent > 0, "send");
        at += sent;
        bytes -= (size_t)sent;
    }
}

/* Polls without sleeping, as a waiting PE does. */
static void receive_all(void *data, size_t bytes) {
    for (char *at = data; bytes;) {
        ssize_t got = recv(peer, at, bytes, MSG_DONTWAIT);
        if (got < 0 && errno == EAGAIN)
            continue;
        need(got > 0, "recv");
        at += got;
        bytes -= (size_t)got;
    }
}

static void exchange(const void *mine, void *theirs, size_t bytes) {
    send_all(mine, bytes);
    receive_all(theirs, bytes);
}

static void report(const struct far_row *row, double value, const char *unit) {
    if (me == 0)
        printf(
            "{\"row\": \"far: %s\", \"value\": %.4g, \"unit\": \"%s\", \"limit\": 0, \"pes\": 2, "
            "\"library\": \"%s\"}\n",
            row->name, value, unit, library);
    fflush(stdout);
}

#endif
