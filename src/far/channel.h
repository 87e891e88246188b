/* SPDX-License-Identifier: BSD-3-Clause */
/* A channel: the two streams of messages between this PE and a far one.
 *
 *   A sends to B:  1  2  3  4  5                  engine delivers:  2  1  4  5  3
 *                                                 B applies:        1 2, then 3 4 5
 *   B to A:        "heard 5", on its next message, or alone
 *
 * A message has a number of its stream. The target applies messages in the order of their numbers,
 * keeps those that come early, and acknowledges by saying how far it has come: on every message
 * that goes the other way, and alone behind some messages or bytes, or when it is asked. Numbers
 * have 32 bits and wrap. A bundle of small messages (far/coalesce.h) is one message here.
 *
 * What is under way is limited. An answer is a message like others, but is never refused: it
 * belongs to a request, and requests are limited, too. Answers come in the order of the requests.
 * What messages say is not known here (far/protocol.h). All stands under one lock (far/message.c),
 * and nothing waits. */
#ifndef WEFT_FAR_CHANNEL_H
#define WEFT_FAR_CHANNEL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>
#include "transport/transport.h"
#include "job/wait.h"

/* The number of the first message of every stream; the same on all PEs of a job. It lies shortly
 * before the wrap, so that every job of some length gets there. */
extern uint32_t weft_message_first;

/* A message on its way out. */
struct weft_message {
    struct iovec text[WEFT_ENGINE_MESSAGE_PARTS - 1];
    int nparts;
    const struct weft_message_request *request; /* NULL: there is no answer to it */
    bool by_the_way; /* a quiet need not wait for it: who waits for what it does learns of that */
    bool may_wait;   /* for others that go there, for a moment, if it is small */
};

/* Somebody who goes on when an answer is there, under the lock of messages: it may send by
 * weft_channel_try_send, and must not wait. */
struct weft_message_continuation {
    void (*answered)(struct weft_message_continuation *continuation);
};

/* Where an answer goes: nblocks blocks, whose beginnings are `step` bytes apart. */
struct weft_message_request {
    char *dest;
    ptrdiff_t step;
    size_t block_bytes, nblocks;
    _Atomic uint32_t *missing; /* of a call that waits: counted down when the answer is there */
    struct weft_message_continuation *continuation; /* or NULL */
};

/* Who knows what messages say. All are called under the lock of messages, and none waits. */
struct weft_message_user {
    /* Applies a message of PE `from`, aligned to WEFT_ENGINE_ALIGNMENT; it may answer that PE.
     * False: it comes again as the next one of that PE, because something has to be complete first.
     */
    bool (*apply)(int from, const void *text, size_t bytes);
    /* Whether what messages of that PE have begun is complete: before that none of them counts as
     * applied. */
    bool (*settled)(int from);
    /* Takes the answer to a request. */
    void (*answered)(int from, const struct weft_message_request *request, const void *text,
                     size_t bytes);
    /* The address of a PE's end. */
    const void *(*address)(int pe, size_t *bytes);
    /* Behind a look in which something has arrived; NULL: nobody wants to know. */
    void (*moved)(void);
};

/* For `apply`: answers the PE whose request is applied, as the last thing that is done to it. */
void weft_message_answer(int pe, const struct iovec *text, int nparts);

/* For `apply` and `answered`: a message of that PE makes no sense. The job ends with this line once
 * the lock is free. False, for those that end with it. */
bool weft_message_refuse(int from, const char *format, ...) __attribute__((format(printf, 2, 3)));

enum {
    WEFT_CHANNEL_MESSAGES = 1024, /* of callers under way */
    WEFT_CHANNEL_REQUESTS = 512,  /* that are not answered: so many answers may come on top */
    WEFT_CHANNEL_BYTES = 1 << 20,
    /* Places for all that depends on a number: more than can be under way. */
    WEFT_CHANNEL_RING = 2 * WEFT_CHANNEL_MESSAGES,
};

/* A message that came early, an answer that had no room, or a bundle. */
struct weft_message_kept {
    struct weft_message_kept *next;
    size_t bytes;
    _Alignas(WEFT_ENGINE_ALIGNMENT) unsigned char message[];
};

struct weft_channel {
    int pe;
    struct weft_engine_link *engine; /* NULL until the first message there */
    int error;                       /* it is dead since dead_ns */
    uint64_t dead_ns;

    /* What goes there. */
    uint32_t sent, acknowledged;
    uint32_t written; /* a quiet waits for messages up to this; not behind `acknowledged` */
    uint32_t asked;   /* acknowledgment of messages up to this is asked for, or there */
    bool must_ask;
    bool
        quiet_follows; /* the last quiet found one message under way: a single put asks by itself */
    uint32_t sent_bytes, bytes_until[WEFT_CHANNEL_RING]; /* of all messages, and up to each */
    struct weft_message_kept *queue, **queue_end;
    struct weft_message_kept *bundle; /* the last one of the queue, if it still takes messages */
    uint64_t bundle_ns;               /* since when */
    uint64_t small_ns;                /* when the last message that may wait went there, */
    uint32_t small_burst;             /* and in which burst of the program's */

    /* What comes from there. */
    uint32_t applied, told; /* up to this, and this is acknowledged */
    uint32_t applying;      /* the message whose text is being applied */
    uint32_t wanted;        /* the peer asks for the acknowledgment of this; not behind `told` */
    uint32_t told_bytes;    /* that were applied and not acknowledged */
    struct weft_message_kept *early[WEFT_CHANNEL_RING];
    bool
        put_off; /* of the next message, which is kept as an early one, the rest is to be applied */
    struct weft_channel *next_put_off;

    /* Answers that are to come. */
    uint32_t requested, answered;
    size_t answer_bytes;
    struct weft_message_request requests[WEFT_CHANNEL_REQUESTS];

    uint32_t watched; /* of `acknowledged`, when the watch of paths has last come by */

    bool unfinished; /* a quiet has to wait for it */
    bool due;        /* in the list of channels that have something to send */
    struct weft_channel *next_due;
};

/* All channels of this process. */
struct weft_channels {
    const struct weft_engine *engine;
    struct weft_engine_end *end; /* NULL: messages are closed */
    const struct weft_message_user *user;
    struct weft_channel **of; /* of every PE; NULL until it is used */
    struct weft_channel *due; /* those that have something to send */
    struct weft_channel *put_off;
    struct weft_channel *dead;
    char failure[512]; /* the job ends with this line; "" until then */
};
extern struct weft_channels weft_channels;

/* How many are unfinished. While there is none a quiet asks nobody. */
extern _Atomic uint32_t weft_channels_unfinished;

/* How many bundles still take messages, and how many channels have put off the next message. */
extern _Atomic uint32_t weft_channels_bundles;
extern _Atomic uint32_t weft_channels_put_off;

/* The job ends with this line once the lock is free; the first one counts. */
void weft_channel_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same, where the engine finds a descriptor of its own closed. */
void weft_channel_fail_closed(void);

/* Makes it at the first use. NULL: there is no memory, and the job ends. */
struct weft_channel *weft_channel_of(int pe);

/* Notes whether a quiet has to wait for the channel, when something of that has changed. */
void weft_channel_count(struct weft_channel *channel);

/* The engine has no way to that PE any more, also if this process has sent nothing there. */
void weft_channel_give_up(int pe, int error);

/* Has what has been applied acknowledged, if the peer waits for that, or may soon. */
void weft_channel_tell(struct weft_channel *channel);

/* How many bytes of text go into one message. */
size_t weft_channel_room(void);

/* A bundle of small messages (far/bundle.h) is one message, the last one that is kept until it
 * goes. Opens one; adds a message that nobody answers to it. False: there is no room, or no bundle.
 */
bool weft_channel_open_bundle(struct weft_channel *channel, uint64_t now_ns);
bool weft_channel_add(struct weft_channel *channel, const struct weft_message *message);

/* Whether all has gone that was kept. */
bool weft_channel_send_kept(struct weft_channel *channel);

/* False: there is no room now. What is kept goes before it. */
bool weft_channel_try_send(struct weft_channel *channel, const struct weft_message *message);

/* Asks for the acknowledgment of what a quiet waits for, or of all, if any is missing. */
void weft_channel_ask(struct weft_channel *channel, bool all);

/* Sends what is due: kept answers, bundles, questions, acknowledgments. With `linger` bundles that
 * are young wait for more, if nobody asks for them. */
void weft_channels_send_due(bool linger);

/* Goes on with messages that have been put off. Whether one has been applied. */
bool weft_channels_go_on(void);

/* Where hosts are pretended: notices channels that have been dead for too long. */
void weft_channels_look_at_dead(void);

/* What the engine delivers to (far/arrive.c). */
void weft_channel_arrived(void *unused, const void *message, size_t bytes);

/* Gives up all of them. */
void weft_channels_free(void);

#endif
