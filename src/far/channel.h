/* SPDX-License-Identifier: BSD-3-Clause */
/* A channel: the two streams of messages between this process and the process of a far PE, which
 * may be a host proxy and apply messages for other PEs, too (weft_far_receiver).
 *
 *   A sends to B:  1  2  3  4  5                  engine delivers:  2  1  4  5  3
 *                                                 B applies:        1 2, then 3 4 5
 *   B to A:        "5 acknowledged", on its next message, or alone
 *
 * Every message except a control message (far/bundle.h) has a number in its stream. The target
 * applies messages in the order of their numbers and keeps those that arrive early. An
 * acknowledgment is the number of the last message applied. It is part of every message in the
 * other direction; it is sent alone after a number of messages or bytes, or when the peer asks for
 * it. Numbers have 32 bits and wrap around. A bundle of small messages (far/coalesce.h) counts as
 * one message.
 *
 * The messages under way are limited. An answer is a message like any other but is never refused:
 * it belongs to a request, and requests are limited, too. Answers arrive in the order of the
 * requests. Channels do not know the format of payloads (far/protocol.h). One lock protects all
 * channels (far/message.c), and no function here blocks. */
#ifndef WEFT_FAR_CHANNEL_H
#define WEFT_FAR_CHANNEL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>
#include "transport/transport.h"
#include "job/wait.h"

/* The number of the first message of every stream, the same on all PEs of a job. It is close to the
 * wrap-around, so that every job of some length passes it. */
extern uint32_t weft_message_first;

/* An outgoing message. */
struct weft_message {
    struct iovec payload[WEFT_ENGINE_MESSAGE_PARTS - 1];
    int nparts;
    const struct weft_message_request
        *request;  /* how to store the answer, or NULL if there is none */
    bool no_quiet; /* no quiet waits for it: the target's own progress shows that it was applied */
    bool may_wait; /* if small, it may wait a moment for others to the same process */
};

/* A continuation to call when an answer has arrived. It runs under the lock of messages: it may
 * send by weft_channel_try_send and must not block. */
struct weft_message_continuation {
    void (*answered)(struct weft_message_continuation *continuation);
};

/* The destination of an answer: nblocks blocks, which begin `step` bytes apart. */
struct weft_message_request {
    char *dest;
    ptrdiff_t step;
    size_t block_bytes, nblocks;
    _Atomic uint32_t *missing; /* decremented when the answer has arrived; or NULL */
    struct weft_message_continuation *continuation; /* or NULL */
};

/* The functions that read and write payloads (far/apply.c). They are called under the lock of
 * messages and must not block. */
struct weft_message_user {
    /* Applies a message from the process of PE `from`, whose payload is aligned to
     * WEFT_ENGINE_ALIGNMENT, and may answer it. Returns false if an earlier operation, or its
     * own on GPU memory, has to complete first, or the message was refused. In the first case apply
     * is called again with the same message before any other from that PE. */
    bool (*apply)(int from, const void *payload, size_t bytes);
    /* Returns whether all operations begun by messages from that PE are complete. Its last message
     * counts as applied only then. */
    bool (*work_done)(int from);
    /* Stores the answer to a request. */
    void (*answered)(int from, const struct weft_message_request *request, const void *payload,
                     size_t bytes);
    /* Returns the engine address of a PE. */
    const void *(*address)(int pe, size_t *bytes);
    /* Called after a poll that moved anything; may be NULL. */
    void (*moved)(void);
};

/* Answers the PE whose request is being applied. `apply` calls this last. */
void weft_message_answer(int pe, const struct iovec *payload, int nparts);

/* Records that a message from that PE is malformed; `apply` and `answered` call this. The job ends
 * with this line once the lock is released. Returns false, for callers to return. */
bool weft_message_refuse(int from, const char *format, ...) __attribute__((format(printf, 2, 3)));

enum {
    WEFT_CHANNEL_MESSAGES = 1024, /* messages under way at which only answers are accepted */
    WEFT_CHANNEL_REQUESTS =
        512, /* unanswered requests; as many answers may be under way in addition */
    WEFT_CHANNEL_BYTES = 1 << 20,
    /* Entries of the tables that are indexed by message number: more than can be under way. */
    WEFT_CHANNEL_RING = 2 * WEFT_CHANNEL_MESSAGES,
};

/* A message that arrived early, a message that waits for room in the engine, or a bundle. */
struct weft_message_kept {
    struct weft_message_kept *next;
    size_t bytes;
    _Alignas(WEFT_ENGINE_ALIGNMENT) unsigned char message[];
};

struct weft_channel {
    int pe;                          /* the PE whose process is at the other end */
    struct weft_engine_link *engine; /* NULL until the first message is sent */
    int error;                       /* not 0: the channel has been dead since dead_ns */
    uint64_t dead_ns;

    /* Outgoing messages. */
    uint32_t sent, acknowledged;
    uint32_t quiet_until; /* a quiet waits for the acknowledgment of the messages up to this one;
                             never before `acknowledged` */
    uint32_t asked;       /* an acknowledgment up to this message was requested or has arrived */
    bool must_ask;
    bool quiet_follows; /* the last quiet found one message: a single put now asks */
    uint32_t sent_bytes,
        bytes_until[WEFT_CHANNEL_RING]; /* bytes sent in all, and up to each message */
    struct weft_message_kept *queue, **queue_end;
    struct weft_message_kept
        *bundle;          /* the last message of the queue, if it is a bundle that is still open */
    uint64_t bundle_ns;   /* when it was opened */
    uint64_t small_ns;    /* when the last message that may wait was sent, and */
    uint32_t small_burst; /* in which burst (far/coalesce.h) */

    /* Incoming messages. */
    uint32_t applied, ack_sent; /* the last message applied; the last one acknowledged */
    uint32_t applying;          /* the message that is being applied */
    uint32_t ack_wanted;        /* the peer asks for it up to here; never before `ack_sent` */
    uint32_t unacked_bytes;     /* bytes applied since the last acknowledgment */
    struct weft_message_kept *early[WEFT_CHANNEL_RING];
    bool put_off; /* the next message is among the early ones, applied in part */
    struct weft_channel *next_put_off;

    /* Answers to this PE's requests. */
    uint32_t requested, answered;
    size_t answer_bytes;
    struct weft_message_request requests[WEFT_CHANNEL_REQUESTS];

    uint32_t watched; /* `acknowledged` when weft_probes_look last checked */

    bool unfinished; /* a quiet has to wait for this channel */
    bool due;        /* it is in the list of channels with something to send */
    struct weft_channel *next_due;
};

/* All channels of this process. */
struct weft_channels {
    const struct weft_engine *engine;
    struct weft_engine_end *end; /* NULL while the engine is closed */
    const struct weft_message_user *user;
    struct weft_channel **of; /* by PE; NULL until the first message */
    struct weft_channel *due; /* the channels with something to send */
    struct weft_channel *put_off;
    struct weft_channel *dead;
    char failure[512]; /* the line with which the job ends, or "" */
};
extern struct weft_channels weft_channels;

/* The number of channels that a quiet has to wait for. While it is 0 a quiet does nothing. */
extern _Atomic uint32_t weft_channels_unfinished;

/* The number of open bundles, and of channels whose next message was put off. */
extern _Atomic uint32_t weft_channels_bundles;
extern _Atomic uint32_t weft_channels_put_off;

/* Ends the job with this line once the lock is released. Only the first call counts. */
void weft_channel_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Ends the job because the program has closed a descriptor of the engine. */
void weft_channel_fail_closed(void);

/* Returns the channel to `pe`, which is made on first use. Returns NULL, and the job ends, if there
 * is no memory. */
struct weft_channel *weft_channel_of(int pe);

/* Updates whether a quiet has to wait for the channel. Called whenever a number that decides this
 * has changed. While a quiet has to wait for some channel, a bit of weft_job.order_slow is set;
 * otherwise shmem_quiet and shmem_fence skip far PEs (api/order.c). */
void weft_channel_count(struct weft_channel *channel);

/* Schedules an acknowledgment if the peer waits for one, or may soon. */
void weft_channel_acknowledge(struct weft_channel *channel);

/* Returns the largest payload of one message. */
size_t weft_message_payload_max(void);

/* A bundle of small messages (far/bundle.h) is one message, the last in the queue.
 * weft_channel_open_bundle opens a bundle. weft_channel_add appends a message to the open bundle;
 * the message must not be a request. Both return false if there is no room; weft_channel_add also
 * if no bundle is open. */
bool weft_channel_open_bundle(struct weft_channel *channel, uint64_t now_ns);
bool weft_channel_add(struct weft_channel *channel, const struct weft_message *message);

/* Sends the queue as far as the engine has room. Returns whether it is empty. */
bool weft_channel_send_kept(struct weft_channel *channel);

/* Sends the queue and then this message. Returns false, with the message not taken, if there is no
 * room. */
bool weft_channel_try_send(struct weft_channel *channel, const struct weft_message *message);

/* Asks the peer for an acknowledgment of the messages that a quiet waits for, or of all, unless it
 * has arrived or was requested already. */
void weft_channel_ask(struct weft_channel *channel, bool all);

/* Sends what is due: queued messages, bundles, requests for acknowledgment, acknowledgments. With
 * `linger`, young bundles stay open for more messages unless a quiet waits for them. */
void weft_channels_send_due(bool linger);

/* Continues the messages that were put off. Returns whether one of them has been applied. */
bool weft_channels_go_on(void);

/* Ends the job if hosts are pretended and a channel has been dead for too long. */
void weft_channels_look_at_dead(void);

/* The engine's delivery callback (far/arrive.c). */
void weft_channel_arrived(void *unused, const void *message, size_t bytes);

/* Frees all channels. */
void weft_channels_free(void);

#endif
