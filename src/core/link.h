/* SPDX-License-Identifier: BSD-3-Clause */
/* A link: the two streams of letters between this PE and a far one.
 *
 *   A sends to B:  1  2  3  4  5                  engine delivers:  2  1  4  5  3
 *                                                 B applies:        1 2, then 3 4 5
 *   B to A:        "heard 5", on its next letter, or alone
 *
 * A letter has a number of its stream. The target applies letters in the order of their numbers,
 * keeps those that come early, and acknowledges by saying how far it has come: on every letter that
 * goes the other way, and alone behind some letters or bytes, or when it is asked. Numbers have 32
 * bits and wrap. A bundle of small letters (core/gather.h) is one letter here.
 *
 * What is under way is limited. An answer is a letter like others, but is never refused: it belongs
 * to a request, and requests are limited, too. Answers come in the order of the requests. What
 * letters say is not known here (core/far_text.h). All stands under one lock (core/letter.c), and
 * nothing waits. */
#ifndef WEFT_CORE_LINK_H
#define WEFT_CORE_LINK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>
#include "transport/transport.h"
#include "core/wait.h"

/* The number of the first letter of every stream; the same on all PEs of a job. It lies shortly
 * before the wrap, so that every job of some length gets there. */
extern uint32_t weft_letter_first;

/* A letter on its way out. */
struct weft_letter {
    struct iovec text[WEFT_ENGINE_LETTER_PARTS - 1];
    int nparts;
    const struct weft_letter_request *request; /* NULL: there is no answer to it */
    bool by_the_way; /* a quiet need not wait for it: who waits for what it does learns of that */
    bool may_wait;   /* for others that go there, for a moment, if it is small */
};

/* Somebody who goes on when an answer is there, under the lock of letters: it may send by
 * weft_link_try_send, and must not wait. */
struct weft_letter_sequel {
    void (*answered)(struct weft_letter_sequel *sequel);
};

/* Where an answer goes: nblocks blocks, whose beginnings are `step` bytes apart. */
struct weft_letter_request {
    char *dest;
    ptrdiff_t step;
    size_t block_bytes, nblocks;
    _Atomic uint32_t *missing; /* of a call that waits: counted down when the answer is there */
    struct weft_letter_sequel *sequel; /* or NULL */
};

/* Who knows what letters say. All are called under the lock of letters, and none waits. */
struct weft_letter_user {
    /* Applies a letter of PE `from`, aligned to WEFT_ENGINE_ALIGNMENT; it may answer that PE.
     * False: it comes again as the next one of that PE, because something has to be complete first.
     */
    bool (*apply)(int from, const void *text, size_t bytes);
    /* Whether what letters of that PE have begun is complete: before that none of them counts as
     * applied. */
    bool (*settled)(int from);
    /* Takes the answer to a request. */
    void (*answered)(int from, const struct weft_letter_request *request, const void *text,
                     size_t bytes);
    /* The address of a PE's end. */
    const void *(*address)(int pe, size_t *bytes);
    /* Behind a look in which something has arrived; NULL: nobody wants to know. */
    void (*moved)(void);
};

/* For `apply`: answers the PE whose request is applied, as the last thing that is done to it. */
void weft_letter_answer(int pe, const struct iovec *text, int nparts);

/* For `apply` and `answered`: a letter of that PE makes no sense. The job ends with this line once
 * the lock is free. False, for those that end with it. */
bool weft_letter_refuse(int from, const char *format, ...) __attribute__((format(printf, 2, 3)));

enum {
    WEFT_LINK_LETTERS = 1024, /* of callers under way */
    WEFT_LINK_REQUESTS = 512, /* that are not answered: so many answers may come on top */
    WEFT_LINK_BYTES = 1 << 20,
    /* Places for all that depends on a number: more than can be under way. */
    WEFT_LINK_RING = 2 * WEFT_LINK_LETTERS,
};

/* A letter that came early, an answer that had no room, or a bundle. */
struct weft_letter_kept {
    struct weft_letter_kept *next;
    size_t bytes;
    _Alignas(WEFT_ENGINE_ALIGNMENT) unsigned char letter[];
};

struct weft_link {
    int pe;
    struct weft_engine_link *engine; /* NULL until the first letter there */
    int error;                       /* it is dead since dead_ns */
    uint64_t dead_ns;

    /* What goes there. */
    uint32_t sent, acknowledged;
    uint32_t written; /* a quiet waits for letters up to this; not behind `acknowledged` */
    uint32_t asked;   /* acknowledgment of letters up to this is asked for, or there */
    bool must_ask;
    bool quiet_follows; /* the last quiet found one letter under way: a single put asks by itself */
    uint32_t sent_bytes, bytes_until[WEFT_LINK_RING]; /* of all letters, and up to each */
    struct weft_letter_kept *queue, **queue_end;
    struct weft_letter_kept *bundle; /* the last one of the queue, if it still takes letters */
    uint64_t bundle_ns;              /* since when */
    uint64_t small_ns;               /* when the last letter that may wait went there, */
    uint32_t small_burst;            /* and in which burst of the program's */

    /* What comes from there. */
    uint32_t applied, told; /* up to this, and this is acknowledged */
    uint32_t applying;      /* the letter whose text is being applied */
    uint32_t wanted;        /* the peer asks for the acknowledgment of this; not behind `told` */
    uint32_t told_bytes;    /* that were applied and not acknowledged */
    struct weft_letter_kept *early[WEFT_LINK_RING];
    bool put_off; /* of the next letter, which is kept as an early one, the rest is to be applied */
    struct weft_link *next_put_off;

    /* Answers that are to come. */
    uint32_t requested, answered;
    size_t answer_bytes;
    struct weft_letter_request requests[WEFT_LINK_REQUESTS];

    uint32_t watched; /* of `acknowledged`, when the watch of paths has last come by */

    bool unfinished; /* a quiet has to wait for it */
    bool due;        /* in the list of links that have something to send */
    struct weft_link *next_due;
};

/* All links of this process. */
struct weft_links {
    const struct weft_engine *engine;
    struct weft_engine_end *end; /* NULL: letters are closed */
    const struct weft_letter_user *user;
    struct weft_link **of; /* of every PE; NULL until it is used */
    struct weft_link *due; /* those that have something to send */
    struct weft_link *put_off;
    struct weft_link *dead;
    char failure[512]; /* the job ends with this line; "" until then */
};
extern struct weft_links weft_links;

/* How many are unfinished. While there is none a quiet asks nobody. */
extern _Atomic uint32_t weft_links_unfinished;

/* How many bundles still take letters, and how many links have put off the next letter. */
extern _Atomic uint32_t weft_links_bundles;
extern _Atomic uint32_t weft_links_put_off;

/* The job ends with this line once the lock is free; the first one counts. */
void weft_link_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same, where the engine finds a descriptor of its own closed. */
void weft_link_fail_closed(void);

/* Makes it at the first use. NULL: there is no memory, and the job ends. */
struct weft_link *weft_link_of(int pe);

/* Notes whether a quiet has to wait for the link, when something of that has changed. */
void weft_link_count(struct weft_link *link);

/* The engine has no way to that PE any more, also if this process has sent nothing there. */
void weft_link_give_up(int pe, int error);

/* Has what has been applied acknowledged, if the peer waits for that, or may soon. */
void weft_link_tell(struct weft_link *link);

/* How many bytes of text go into one letter. */
size_t weft_link_room(void);

/* A bundle of small letters (core/bundle.h) is one letter, the last one that is kept until it goes.
 * Opens one; adds a letter that nobody answers to it. False: there is no room, or no bundle. */
bool weft_link_open_bundle(struct weft_link *link, uint64_t now_ns);
bool weft_link_add(struct weft_link *link, const struct weft_letter *letter);

/* Whether all has gone that was kept. */
bool weft_link_send_kept(struct weft_link *link);

/* False: there is no room now. What is kept goes before it. */
bool weft_link_try_send(struct weft_link *link, const struct weft_letter *letter);

/* Asks for the acknowledgment of what a quiet waits for, or of all, if any is missing. */
void weft_link_ask(struct weft_link *link, bool all);

/* Sends what is due: kept answers, bundles, questions, acknowledgments. With `linger` bundles that
 * are young wait for more, if nobody asks for them. */
void weft_links_send_due(bool linger);

/* Goes on with letters that have been put off. Whether one has been applied. */
bool weft_links_go_on(void);

/* Where hosts are pretended: notices links that have been dead for too long. */
void weft_links_look_at_dead(void);

/* What the engine delivers to (core/arrive.c). */
void weft_link_arrived(void *unused, const void *letter, size_t bytes);

/* Gives up all of them. */
void weft_links_free(void);

#endif
