/* SPDX-License-Identifier: BSD-3-Clause */
/* The structures of the engine over TCP:
 *
 *    end                  one per process: a port, an epoll, a buffer to read into
 *     |-- link            one for each PE that messages are sent to
 *     |     `-- out       the connection that the link sends on
 *     `-- connection      one socket, for messages in both directions
 *
 * Two PEs that connect to each other at the same time make two connections. Both may be used,
 * because messages need no order. Later both sides use only the one made by the end with the
 * smaller name, because TCP's acknowledgments travel with messages of the other direction; they
 * need no message to agree on that.
 *
 * A connection carries no messages until each side has proved to the other one that it knows the
 * secret of the side that was called (tcp/greeting.h). */
#ifndef WEFT_TCP_END_H
#define WEFT_TCP_END_H

#include <netinet/in.h>
#include "base/siphash.h"
#include "transport/network.h"

enum {
    WEFT_TCP_MESSAGE_BYTES = 65024,
    WEFT_TCP_ROOM_BYTES = 128 << 10, /* read at once */
    WEFT_TCP_NAME_BYTES = 16,
    WEFT_TCP_NONCE_BYTES = 16,
};

/* An end's address, which all PEs receive through an encrypted exchange. */
struct weft_tcp_address {
    struct sockaddr_in6 at; /* or a sockaddr_in */
    unsigned char name[WEFT_TCP_NAME_BYTES];
    unsigned char secret[WEFT_SIPHASH_BYTES]; /* a caller proves that it knows this */
};

/* A message on the wire: its length, its bytes, and padding to a multiple of 8 bytes, which aligns
 * the next message where it arrives. */
struct weft_tcp_frame {
    uint64_t bytes;
    _Alignas(WEFT_ENGINE_ALIGNMENT) unsigned char message[WEFT_TCP_MESSAGE_BYTES];
};

/* A part of a frame: the rest that the kernel has no room for yet, or the beginning that has
 * arrived. */
struct weft_tcp_part {
    struct weft_tcp_part *next; /* in the list of free parts */
    size_t from, to;
    struct weft_tcp_frame frame;
};

/* The messages of a greeting. */
struct weft_tcp_hello {
    unsigned char magic[8];
    unsigned char name[WEFT_TCP_NAME_BYTES]; /* of the caller */
    unsigned char nonce[WEFT_TCP_NONCE_BYTES];
};

struct weft_tcp_challenge {
    unsigned char nonce[WEFT_TCP_NONCE_BYTES];
    unsigned char proof[WEFT_SIPHASH_BYTES];
};

struct weft_tcp_greeting {
    struct weft_tcp_hello hello;
    struct weft_tcp_challenge challenge;
    unsigned char proof[WEFT_SIPHASH_BYTES]; /* of the caller */
    unsigned char welcome[8];
    size_t have; /* bytes received of the awaited message */
};

struct weft_tcp_connection {
    struct weft_tcp_connection *next;
    struct weft_engine_end *end;
    struct weft_engine_link *link; /* to the same PE; NULL if there is none yet */
    int socket;                    /* -1: the connection has ended */
    bool made;                     /* this end has made it, as the caller */
    uint32_t events;               /* that the epoll waits for */
    enum weft_tcp_stage {
        WEFT_TCP_CONNECTING,       /* caller: the kernel is still connecting the socket */
        WEFT_TCP_AWAITS_HELLO,     /* callee: accepted, nothing is known of the caller */
        WEFT_TCP_AWAITS_CHALLENGE, /* caller: hello is sent */
        WEFT_TCP_AWAITS_PROOF,     /* callee: challenge is sent, the caller is still a stranger */
        WEFT_TCP_AWAITS_WELCOME,   /* caller: the callee has proved itself, proof is sent */
        WEFT_TCP_OPEN,             /* both sides are proved: messages only */
    } stage;
    uint64_t since_ns; /* time at which a stranger connected */
    struct weft_tcp_greeting greeting;
    struct weft_tcp_part *incoming; /* the beginning of a frame that has arrived, or NULL */
    struct weft_tcp_part *unsent;   /* the rest of a frame to send, or NULL */
};

struct weft_engine_link {
    struct weft_engine_link *next;
    struct weft_engine_end *end;
    struct weft_tcp_address peer;
    struct weft_tcp_connection *out;    /* used for sending; NULL if there is none yet */
    struct weft_tcp_connection *better; /* replaces `out` after a partial message */
    struct weft_tcp_part *first;        /* message that waits for a connection */
    unsigned tries;                     /* number of calls made */
    int error;                          /* nonzero: the link is dead */
};

struct weft_engine_end {
    struct weft_engine_options options;
    char interface[32];
    struct weft_tcp_address own;
    int listener, epoll;
    int error; /* nonzero: no more connections can be accepted */
    struct weft_engine_link *links;
    struct weft_tcp_connection *connections; /* the open ones */
    struct weft_tcp_connection *greeting;    /* those that are not open yet, the oldest first */
    unsigned nstrangers;                     /* how many of these were made by others */
    struct weft_tcp_part *free;
    unsigned nfree;
    unsigned moved;                     /* in this progress */
    struct weft_tcp_connection *spoken; /* used by the last message since the last progress */
    unsigned unasked;                   /* polls in a row that did not ask the epoll */
    _Alignas(WEFT_ENGINE_ALIGNMENT) unsigned char room[WEFT_TCP_ROOM_BYTES];
};

#endif
