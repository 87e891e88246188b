/* SPDX-License-Identifier: BSD-3-Clause */
/* The contract of an engine: how messages get from one PE to another that has no memory in common.
 *
 * An engine is a library that exports `const struct weft_engine weft_engine`, one table of
 * functions. It carries messages and knows nothing of what they say: numbers, acknowledgments, and
 * what puts and atomics are made of, stand above it (far/message.h, far/far.h). So an engine need
 * not keep the order of messages, but each that it has taken arrives whole, and exactly once, as
 * long as both PEs live.
 *
 * All functions are called under one lock, by one thread at a time, though by different ones. None
 * may block. Results are 0 or -errno; an engine writes no line of its own, but may keep what it
 * knows to `strerror`'s words. Its descriptors are close-on-exec. A child that a PE forks calls
 * nothing of it. */
#ifndef WEFT_TRANSPORT_TRANSPORT_H
#define WEFT_TRANSPORT_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

struct sockaddr;
struct sockaddr_storage;

#define WEFT_ENGINE_VERSION       4
#define WEFT_ENGINE_SYMBOL        "weft_engine"
#define WEFT_ENGINE_ADDRESS_BYTES 448
#define WEFT_ENGINE_MESSAGE_MIN   8192 /* bytes that the longest message has at least */
#define WEFT_ENGINE_MESSAGE_PARTS 4    /* that a message comes in at most */
#define WEFT_ENGINE_ALIGNMENT     8    /* of a message that is delivered */
#define WEFT_ENGINE_TEXT_BYTES    512  /* room for what it says to a person */

struct weft_engine_end;  /* this process's side of the engine, of which it has one */
struct weft_engine_link; /* its way to one other PE */

/* What an end knows of its PE. */
struct weft_engine_options {
    int pe, npes;

    /* The interface by which this host speaks to the others of the job, as its launcher has found
     * it; NULL: hosts are pretended, and are all this one. */
    const char *network;

    /* The address that this host has there: the very one by which it has reached another host, of
     * IPv4 or IPv6, or one of the interface that the user has named. NULL: the interface has none,
     * or hosts are pretended. */
    const struct sockaddr *address;

    /* The user vouches for the network: an engine without encryption refuses one that strangers can
     * reach, unless this is set. */
    bool trusted;

    /* "": where `open` fails, it may write the reason here, WEFT_ENGINE_TEXT_BYTES at most, and
     * what to do about it. */
    char *reason;

    /* Takes a message that has arrived: called within `progress` alone, by the thread that is in
     * it. The bytes are the engine's again when it returns. It may call `message` on any link, for
     * an answer, and `connect`; so an engine must have its own affairs in order before it delivers.
     */
    void (*deliver)(void *context, const void *message, size_t bytes);
    void *context;
};

/* Facts about a link that an engine promises, as bits. */
#define WEFT_ENGINE_ORDERED 1u /* messages arrive in the order in which they were taken */

struct weft_engine {
    uint32_t version; /* WEFT_ENGINE_VERSION; first, so that it can be read of any engine */
    const char *name; /* for a person */

    /* The longest message that it takes; the same on all PEs of a job. */
    size_t message_bytes;

    /* Makes this process's end; local. What is in *options is copied, and *end is set on success
     * alone. Messages may arrive from then on, but none is delivered before the first `progress`.
     * After a failure there is nothing to give back. Threads that it starts, here or later, take no
     * signals. */
    int (*open)(const struct weft_engine_options *options, struct weft_engine_end **end);

    /* Writes the address by which others connect to this end. *bytes is the room, at least
     * WEFT_ENGINE_ADDRESS_BYTES, and then what it took. Core hands it to all PEs. */
    int (*address)(struct weft_engine_end *end, void *address, size_t *bytes);

    /* Makes a link to the PE with this address, before the first message there, once. The peer need
     * not take part: wire-up that needs it goes on in `progress`, and until it is done `message`
     * may answer -EAGAIN. The link lives until `abandon`. */
    int (*connect)(struct weft_engine_end *end, const void *address, size_t bytes,
                   struct weft_engine_link **link);

    /* Sends one message: the parts one after the other, of message_bytes at most in all; empty ones
     * are allowed. 0: it is taken, and the parts are the caller's again. -EAGAIN: there is no room
     * now, nothing is taken, and `progress` makes room. Anything else: the link is dead and no more
     * messages arrive by it, also of those that were taken; core then waits a moment for the news
     * of the peer's death, and else ends the job with that error. */
    int (*message)(struct weft_engine_link *link, const struct iovec *parts, int nparts);

    /* Moves what can be moved, and delivers what has arrived. Returns how much that was; 0: there
     * was nothing to do. It stops after some messages, so that whoever called comes to look at what
     * it waits for. */
    unsigned (*progress)(struct weft_engine_end *end);

    /* Before a thread sleeps: 0, and *descriptor becomes readable once `progress` has something to
     * do, which includes room for a message that was refused. It is the engine's, and the same
     * every time; it is armed until `progress` is called. -EBUSY: there is something to do already.
     * -EBADF: the program has closed the engine's descriptors. */
    int (*arm)(struct weft_engine_end *end, int *descriptor);

    /* What it promises of this link. */
    uint32_t (*abilities)(struct weft_engine_link *link);

    /* How many threads it has in this process. */
    unsigned (*threads)(struct weft_engine_end *end);

    /* By what it reaches others, as one line for a person; without an end, what it would be. */
    void (*describe)(struct weft_engine_end *end, char *text, size_t bytes);

    /* Gives everything back, the end and its links. It bids nobody farewell, because peers may be
     * dead; core has seen to it that nothing is under way that anybody still wants. */
    void (*abandon)(struct weft_engine_end *end);

    /* The IP address at which messages of other hosts arrive: core probes the way there when
     * messages are not acknowledged for long. 0, or -errno: there is none. The slot may be NULL,
     * too. */
    int (*where)(struct weft_engine_end *end, struct sockaddr_storage *address);
};

#endif
