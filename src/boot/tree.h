/* SPDX-License-Identifier: BSD-3-Clause */
/* What the front of a job on several hosts and its daemons tell each other: the kinds of frames
 * (boot/frames.h) and what is in them. Neither side believes the other: every field is checked
 * where it arrives, and a frame that makes no sense is the end of whoever sent it.
 *
 *      daemon                                front
 *      HELLO           ------------------->         once its key is proven
 *                      <-------------------  GO     when all hosts have said HELLO: start the PEs
 *      GAVE, NEWS, STALL, OUTPUT, TAKEN, CAUSE, LINE -->
 *                      <--  SHARED, NEWS, STALL, INPUT, TAKEN, SIGNAL, CAUSE
 *      DONE            ------------------->         behind all that its PEs have written
 *                      <-------------------  BYE    the daemon may go
 *
 * Both send BEAT four times a second. Numbers are those of the job: PEs and hosts count through
 * all.
 *
 * Beyond some hosts there are relays between the two (launch/relay.h), which pass all of this on
 * but BEAT, and say LOST of what has gone below them. A frame has the host that it is of or for. */
#ifndef WEFT_BOOT_TREE_H
#define WEFT_BOOT_TREE_H

#include <stdbool.h>
#include <stdint.h>
#include "boot/wire.h"

#define WEFT_TREE_LAYOUT 4u /* of frames and of the start text */

/* The first line that a daemon writes on its standard output: ssh has come through to its host. */
#define WEFT_TREE_STARTED "oshrun --daemon has started"

/* The field `host` of a frame. Up: whose it is. Down: for whom; or for all, or all but one. */
#define WEFT_TREE_ALL           (-1)
#define WEFT_TREE_ALL_BUT(host) (-2 - (host))

/* Names of hosts have at most so many bytes, with the zero behind them. */
enum { WEFT_TREE_NAME_BYTES = 64 };

enum {
    WEFT_TREE_BEAT_MS = 250,                    /* between two beats */
    WEFT_TREE_LIVES_MS = 3 * WEFT_TREE_BEAT_MS, /* since a host that lives was heard of, at most,
                                       when it is said to be cut off */
    WEFT_TREE_PIECE_MAX = 65536,                /* bytes of one OUTPUT or INPUT */
    WEFT_TREE_LINE_MAX = 8192,                  /* bytes of one LINE */
    WEFT_TREE_OUTPUT_MAX = 1 << 20, /* bytes of OUTPUT that a host may have sent and that are not
                                       TAKEN: it stops reading what its PEs write */
    WEFT_TREE_INPUT_MAX = 1 << 18,  /* the same of INPUT */
};

enum weft_tree_kind {
    WEFT_TREE_HELLO = 1, /* up: struct weft_tree_hello */
    WEFT_TREE_GO,        /* down: start the PEs */
    WEFT_TREE_GAVE,      /* up: struct weft_tree_exchange, then what each member on this host gives,
                            in the order of their numbers */
    WEFT_TREE_SHARED,    /* down: struct weft_tree_exchange, then what every member gives */
    WEFT_TREE_PE_STATUS, /* both: one struct weft_tree_pe_status or more; up of own PEs, down of
                            others */
    WEFT_TREE_OUTPUT,    /* up: what PE `pe` has written to its descriptor `value`, 1 or 2; without
                            bytes: its end */
    WEFT_TREE_INPUT,     /* down: for the standard input of PE 0; without bytes: its end */
    WEFT_TREE_TAKEN,     /* both: `value` bytes of what came (OUTPUT or INPUT) have gone on */
    WEFT_TREE_SIGNAL,    /* down: signal `value` for all PEs; `pe` is 1 if a terminal sent it */
    WEFT_TREE_CAUSE,     /* both: struct weft_tree_cause. Up, the end of the job begins here, or
                            should, of WEFT_ABORT_CUT, if the other host lives; down, the front's
                            choice,  which may be of another host */
    WEFT_TREE_LINE,      /* up: a line for the person, without its end; `value` is 1 if it tells the
                            cause that this host has begun to end by, which the front writes only if
                            it has taken that cause */
    WEFT_TREE_DONE,      /* up: struct weft_tree_done */
    WEFT_TREE_BYE,       /* down: the DONE has come */
    WEFT_TREE_BEAT,      /* both: still here */
    WEFT_TREE_LONG_WAIT, /* both: a wait of PE `pe` that lasts, struct weft_long_wait_facts, in
                        place `value` & 255 of WEFT_LONG_WAITS; with 256 its PE has written a line
                        of it; without bytes: none is there any more. Up of own PEs, down of others
                      */
    WEFT_TREE_CLOSED,    /* down: nobody reads descriptor `value`, 1 or 2, any more; PEs are to meet
                            SIGPIPE as with a closed pipe of their own */
    WEFT_TREE_LOST, /* up, of a relay: it has lost `value` hosts from `host` on, or could not start
                       them; why, in words */
};

/* How far a daemon has come. The daemon and its front both count it, and take no frame that does
 * not belong to the phase. */
enum weft_tree_phase {
    WEFT_TREE_BEFORE_HELLO,
    WEFT_TREE_BEFORE_GO,
    WEFT_TREE_AT_WORK,
    WEFT_TREE_AFTER_DONE,
};

/* Whether a daemon in this phase may send a frame of this kind, and whether its front may. Only
 * relays send LOST. */
bool weft_tree_may_rise(uint32_t kind, enum weft_tree_phase phase);
bool weft_tree_may_descend(uint32_t kind, enum weft_tree_phase phase);

struct weft_tree_hello {
    uint32_t layout; /* WEFT_TREE_LAYOUT */
    int32_t cores;   /* that this job may use on the host */
    int32_t pid;     /* of the daemon */
    char version[32];
};

/* The head of GAVE and SHARED. Behind it are the bits of the members (boot/wire.h), except in an
 * exchange of all, whose key is 0. Contributions follow only if the status is 0. */
struct weft_tree_exchange {
    uint64_t key;
    uint32_t bytes; /* of one contribution, at most WEFT_BOOT_BLOB_MAX */
    int32_t status; /* 0, or -EPROTO: contributions differ in size */
};

/* A GAVE or SHARED, taken apart or to be put together. */
struct weft_tree_given {
    struct weft_tree_exchange head;
    struct weft_wire_members members;
    unsigned char *contributions; /* in the payload, */
    size_t bytes;                 /* of so many bytes */
};

/* Takes a payload apart. False if it makes no sense in a job of that size; how many contributions
 * there are is for the caller to check. */
bool weft_tree_given_read(struct weft_tree_given *given, const void *payload, size_t bytes,
                          int npes);

/* Returns a payload, the caller's to free, with room for `count` contributions, or NULL if there is
 * no memory. *bytes is its size, and given->contributions points into it. */
unsigned char *weft_tree_given_make(struct weft_tree_given *given, int npes, int count,
                                    size_t *bytes);

/* The entry of one PE in the control page, as its host sees it. */
struct weft_tree_pe_status {
    int32_t pe;
    int32_t pid;
    uint32_t state; /* enum weft_pe_state */
    uint32_t departures;
    int32_t exit_status;
};

/* As struct weft_cause, in numbers of fixed widths. */
struct weft_tree_cause {
    uint32_t kind; /* enum weft_end_kind */
    int32_t pe;    /* -1: none */
    int32_t pid;
    int32_t detail;
    uint32_t state; /* enum weft_pe_state */
    int32_t unused; /* 0 */
};

/* The payload that tells a cause, and the cause that a payload tells: false if it makes no sense,
 * as the PE, the host, the status or the signal in it do not exist in a job of that size. */
struct weft_cause;
struct weft_tree_cause weft_tree_cause_make(const struct weft_cause *cause);
bool weft_tree_cause_read(struct weft_cause *cause, const void *payload, size_t bytes, int npes,
                          int nhosts);

/* All processes of this host are over. */
struct weft_tree_done {
    int32_t status;       /* that oshrun would exit with if this host were alone */
    int32_t first_status; /* of its first PE that ended with another status than 0; 0: none, */
    int32_t first_pe;     /* which it was, */
    int32_t first_pid;
    int32_t failures; /* and how many PEs have ended in order with another status than 0 */
};

/* Whether these are statuses and counts of a host with `npes` PEs. Which PE was first, the front
 * checks. */
bool weft_tree_done_is_sound(const struct weft_tree_done *done, int npes);

#endif
