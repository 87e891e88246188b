/* SPDX-License-Identifier: BSD-3-Clause */
/* An engine between PEs of one host, for tests. A link is a ring of messages (message_ring.h) whose
 * descriptor is sent over a Unix socket without a name in the file system; the socket also wakes
 * either side when it sleeps. A message to a target that polls takes no system call. The engine can
 * be slow, late and out of order (settings.h), and it checks its caller: a call that the contract
 * of transport/transport.h forbids ends the process with a line. */
#ifndef TESTS_FAR_ENGINE_ENGINE_H
#define TESTS_FAR_ENGINE_ENGINE_H

#include <pthread.h>
#include <sys/un.h>
#include "late.h"
#include "message_ring.h"
#include "transport/transport.h"

/* The source of an event. */
enum source_kind { SOURCE_LISTENER, SOURCE_TIMER, SOURCE_INBOUND, SOURCE_LINK };
struct source {
    enum source_kind kind;
    int fd;
};

struct inbound {
    struct source source; /* fd -1: the writer has gone */
    struct message_ring ring;
};

struct weft_engine_link {
    struct source source;
    struct weft_engine_end *end;
    struct weft_engine_link *next;
    struct message_ring ring;
    char name[40]; /* of the reader */
    bool dead;     /* the reader has gone */
};

struct weft_engine_end {
    struct weft_engine_options options;
    struct settings settings;
    struct source listener, timer;
    int epoll;
    char name[40]; /* of the listener's abstract address, whose first byte is 0 */

    struct inbound **inbound;
    size_t ninbound;
    struct weft_engine_link *links;

    bool armed;   /* readers sleep, as far as writers know */
    bool refused; /* by a random choice, though there was room: there is something to do */
    unsigned turns;
    struct late late;
    uint64_t random, sent, received;

    _Atomic pthread_t caller; /* the thread that is in a call; 0 if there is none */
    bool delivering;
};

/* Ends the process: the caller has broken the contract, or the engine cannot continue. */
_Noreturn void engine_fail(const struct weft_engine_end *end, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* sockets.c; returns 0 or -errno. */
int sockets_open(struct weft_engine_end *end);
void sockets_close(struct weft_engine_end *end);
int sockets_connect(struct weft_engine_link *link, const void *name, size_t bytes);

/* Accepts connections and takes bells. Returns how many links that had no room have some now; their
 * writers must be told, since the bell does not ring again. */
unsigned sockets_look(struct weft_engine_end *end);

void sockets_ring(struct weft_engine_end *end, int fd);
int sockets_set_timer(struct weft_engine_end *end, uint64_t at_ns);

#endif
