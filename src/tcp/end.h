/* SPDX-License-Identifier: BSD-3-Clause */
/* What the engine over TCP is made of:
 *
 *    end                  one of a process: a port, an epoll, room to read into
 *     |-- link            one for each PE that messages go to
 *     |     `-- out       the connection by which they go
 *     `-- connection      one socket; messages go both ways
 *
 * Two PEs that connect to each other at the same time make two connections. Both may be used, as
 * messages need no order; both sides then agree on one without a word, because acknowledgments of
 * TCP go with messages of the other direction: that which the end with the smaller name has made.
 *
 * A connection is worth nothing until each side has shown the other one that it knows the secret of
 * the side that was called (tcp/greeting.h). */
#ifndef WEFT_TCP_END_H
#define WEFT_TCP_END_H

#include <netinet/in.h>
#include "base/siphash.h"
#include "transport/network.h"

enum {
    WEFT_TCP_MESSAGE_BYTES = 65024,
    WEFT_TCP_ROOM_BYTES = 128 << 10, /* that is read at once */
    WEFT_TCP_NAME_BYTES = 16,
    WEFT_TCP_NONCE_BYTES = 16,
};

/* By what others come to an end: core hands it to all PEs, over what is encrypted. */
struct weft_tcp_address {
    struct sockaddr_in6 at; /* or a sockaddr_in */
    unsigned char name[WEFT_TCP_NAME_BYTES];
    unsigned char secret[WEFT_SIPHASH_BYTES]; /* who calls shows that they know it */
};

/* A message on the wire: its length, its text, and nothing up to a multiple of 8 bytes, so that the
 * next one is aligned where it arrives, too. */
struct weft_tcp_frame {
    uint64_t bytes;
    _Alignas(WEFT_ENGINE_ALIGNMENT) unsigned char message[WEFT_TCP_MESSAGE_BYTES];
};

/* A part of a frame: the end that has no room yet, or the beginning that has come. */
struct weft_tcp_part {
    struct weft_tcp_part *next; /* of those that are free */
    size_t from, to;
    struct weft_tcp_frame frame;
};

/* What was said before messages. */
struct weft_tcp_hello {
    unsigned char magic[8];
    unsigned char name[WEFT_TCP_NAME_BYTES]; /* of who calls */
    unsigned char nonce[WEFT_TCP_NONCE_BYTES];
};

struct weft_tcp_challenge {
    unsigned char nonce[WEFT_TCP_NONCE_BYTES];
    unsigned char proof[WEFT_SIPHASH_BYTES];
};

struct weft_tcp_greeting {
    struct weft_tcp_hello hello;
    struct weft_tcp_challenge challenge;
    unsigned char proof[WEFT_SIPHASH_BYTES]; /* of who calls */
    unsigned char welcome[8];
    size_t have; /* of the message that is awaited */
};

struct weft_tcp_connection {
    struct weft_tcp_connection *next;
    struct weft_engine_end *end;
    struct weft_engine_link *link; /* to the same PE; NULL: none yet */
    int socket;                    /* -1: it is over */
    bool made;                     /* by this end, which is the one that calls */
    uint32_t events;               /* that the epoll waits for */
    enum weft_tcp_stage {
        WEFT_TCP_CONNECTING,
        WEFT_TCP_AWAITS_HELLO,
        WEFT_TCP_AWAITS_CHALLENGE,
        WEFT_TCP_AWAITS_PROOF,
        WEFT_TCP_AWAITS_WELCOME,
        WEFT_TCP_OPEN,
    } stage;
    uint64_t since_ns; /* a stranger has come */
    struct weft_tcp_greeting greeting;
    struct weft_tcp_part *in, *out;
};

struct weft_engine_link {
    struct weft_engine_link *next;
    struct weft_engine_end *end;
    struct weft_tcp_address peer;
    struct weft_tcp_connection *out;    /* by which messages go; NULL: there is none yet */
    struct weft_tcp_connection *better; /* by which they are to go behind a message that is cut */
    struct weft_tcp_part *first;        /* message, that waits for a connection */
    unsigned tries;                     /* of connections */
    int error;                          /* it is dead */
};

struct weft_engine_end {
    struct weft_engine_options options;
    char interface[32];
    struct weft_tcp_address own;
    int listener, epoll;
    int error; /* nobody can come in any more */
    struct weft_engine_link *links;
    struct weft_tcp_connection *connections; /* those that are open */
    struct weft_tcp_connection *greeting;    /* those that are not yet, the oldest first */
    unsigned nstrangers;                     /* of them, that others have made */
    struct weft_tcp_part *free;
    unsigned nfree;
    unsigned moved;                     /* in this progress */
    struct weft_tcp_connection *spoken; /* by which a message has gone since */
    unsigned unasked;                   /* looks in a row that did not ask the epoll */
    _Alignas(WEFT_ENGINE_ALIGNMENT) unsigned char room[WEFT_TCP_ROOM_BYTES];
};

#endif
