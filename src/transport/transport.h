/* SPDX-License-Identifier: BSD-3-Clause */
/* The contract of an engine, which carries messages between PEs without common memory.
 *
 * An engine is a library that exports `const struct weft_engine weft_engine`, a table of functions.
 * It carries messages and does not interpret them: numbers, acknowledgments, and the meaning of
 * puts and atomics are implemented above it (far/message.h, far/far.h). So an engine need not keep
 * the order of messages, but each message that it has accepted arrives whole, and exactly once, as
 * long as both PEs live.
 *
 * While an engine is opened, one thread calls its functions. Later all are called under one lock,
 * by one thread at a time, though by different threads. None of them may block, except that `open`
 * may wait some seconds for its address. Results are 0 or -errno. An engine writes no lines of its
 * own; its errors are described by `strerror` and, from `open`, by a reason. Its descriptors are
 * close-on-exec. A child that a PE forks calls no function of it. */
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
#define WEFT_ENGINE_MESSAGE_MIN   8192 /* least value of message_bytes */
#define WEFT_ENGINE_MESSAGE_PARTS 4    /* most parts of a message */
#define WEFT_ENGINE_ALIGNMENT     8    /* of a delivered message */
#define WEFT_ENGINE_TEXT_BYTES    512  /* size of its texts for a person */

struct weft_engine_end;  /* this process's side of the engine; there is one */
struct weft_engine_link; /* its connection to one other PE */

/* The facts about its PE that an end receives. */
struct weft_engine_options {
    int pe, npes;

    /* The interface through which this host communicates with the other hosts of the job, as its
     * launcher has found out. NULL: hosts are pretended, and all of them are this host. */
    const char *network;

    /* This host's address there, of IPv4 or IPv6: exactly the address through which it has reached
     * another host, or an address of the interface that the user has named. NULL: the interface has
     * none, or hosts are pretended. */
    const struct sockaddr *address;

    /* The user vouches for the network. If this is not set, an engine without encryption refuses a
     * network that strangers can reach. */
    bool trusted;

    /* Initially "". If `open` fails, it may write the reason and the remedy here, at most
     * WEFT_ENGINE_TEXT_BYTES. */
    char *reason;

    /* Receives a message that has arrived. Called only within `progress`, by its thread. The bytes
     * belong to the engine again on return. It may call `message` on any link, for an answer, and
     * `connect`; so the engine's state must be consistent before it delivers. */
    void (*deliver)(void *context, const void *message, size_t bytes);
    void *context;
};

/* Properties that an engine guarantees for a link, as bits. */
#define WEFT_ENGINE_ORDERED 1u /* messages arrive in the order in which they were accepted */

struct weft_engine {
    uint32_t version; /* WEFT_ENGINE_VERSION; first, so that it can be read in any engine */
    const char *name; /* for a person */

    /* Size of the longest message that it accepts; equal on all PEs of a job. */
    size_t message_bytes;

    /* Makes this process's end; local. *options is copied, and *end is set only on success.
     * Messages may arrive from then on, but none is delivered before the first `progress`. After a
     * failure nothing has to be freed. Threads that the engine starts, here or later, receive no
     * signals. */
    int (*open)(const struct weft_engine_options *options, struct weft_engine_end **end);

    /* Writes the address through which others connect to this end. *bytes is the size of the
     * buffer, at least WEFT_ENGINE_ADDRESS_BYTES, and receives the size of the address. The caller
     * sends it to all PEs. */
    int (*address)(struct weft_engine_end *end, void *address, size_t *bytes);

    /* Makes a link to the PE with this address; called once, before the first message there. The
     * peer need not take part: a set-up that needs the peer continues in `progress`, and until it
     * is complete `message` may return -EAGAIN. The link lives until `abandon`. */
    int (*connect)(struct weft_engine_end *end, const void *address, size_t bytes,
                   struct weft_engine_link **link);

    /* Sends one message: the parts one after the other, at most message_bytes in all; empty parts
     * are allowed. Returns 0 if the message is accepted; the parts belong to the caller again.
     * Returns -EAGAIN if there is no room now: nothing is accepted, and `progress` makes room. Any
     * other result means that the link is dead and no more messages arrive on it, not even those
     * that were accepted. The caller ends the job at once for -EMFILE, -ENFILE, -EAFNOSUPPORT,
     * -EBADF and -ENOTSOCK. Otherwise it waits for a report of the peer's death; between hosts it
     * reports the host as cut off after WEFT_HOST_TIMEOUT, on one host it soon ends the job. */
    int (*message)(struct weft_engine_link *link, const struct iovec *parts, int nparts);

    /* Sends and receives what is possible, and delivers messages that have arrived. Returns how
     * much it has done; 0 means nothing. It stops after some messages, so that its caller can check
     * the condition that it waits for. */
    unsigned (*progress)(struct weft_engine_end *end);

    /* Prepares for a thread's sleep. Returns 0, and *descriptor becomes readable as soon as
     * `progress` has something to do, which includes room for a message that was refused. The
     * descriptor belongs to the engine, and is the same every time; it stays armed until `progress`
     * is called. Returns -EBUSY if there is something to do already, -EBADF if the program has
     * closed the engine's descriptors. */
    int (*arm)(struct weft_engine_end *end, int *descriptor);

    /* Returns the properties that it guarantees for this link. */
    uint32_t (*abilities)(struct weft_engine_link *link);

    /* Returns the number of its threads in this process. */
    unsigned (*threads)(struct weft_engine_end *end);

    /* Writes one line for a person about the network that it uses; without an end, about the
     * engine. */
    void (*describe)(struct weft_engine_end *end, char *text, size_t bytes);

    /* Frees the end and its links. Sends nothing to peers, because they may be dead; the caller has
     * made sure that nobody still needs any message under way. */
    void (*abandon)(struct weft_engine_end *end);

    /* Returns in *address the IP address at which messages of other hosts arrive. It is probed when
     * messages are not acknowledged for long. Returns 0, or -errno if there is none. The slot may
     * be NULL. */
    int (*where)(struct weft_engine_end *end, struct sockaddr_storage *address);
};

#endif
