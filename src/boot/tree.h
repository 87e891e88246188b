/* SPDX-License-Identifier: BSD-3-Clause */
/* The frames (boot/frames.h) between the front of a job on several hosts and its daemons. Without
 * oshrun, agents exchange some of them (boot/agent.h). Neither side trusts the other: every field
 * is checked by the receiver, and a side that sends an invalid frame counts as lost.
 *
 *      daemon                                front
 *      HELLO           ------------------->         after its key is proven
 *                      <-------------------  GO     after all hosts have sent HELLO: start the PEs
 *      GAVE, PE_STATUS, LONG_WAIT, OUTPUT, TAKEN, CAUSE, LINE  -->
 *                      <--  SHARED, PE_STATUS, LONG_WAIT, INPUT, TAKEN, SIGNAL, CAUSE, CLOSED
 *      DONE            ------------------->         its PEs have ended; after an early end, output
 *                                                   and lines may follow
 *                      <-------------------  BYE    the daemon may end
 *
 * Both send BEAT four times a second. PEs and hosts have their numbers in the job.
 *
 * Jobs on many hosts have relays between the front and the daemons (launch/relay.h). They forward
 * all frames except BEAT, and send LOST for hosts below them that are lost. The field `host` of a
 * frame is its sender or receiver. */
#ifndef WEFT_BOOT_TREE_H
#define WEFT_BOOT_TREE_H

#include <stdbool.h>
#include <stdint.h>
#include "boot/wire.h"

#define WEFT_TREE_LAYOUT 4u /* of frames and of the start text */

/* The first line that a daemon writes to its standard output: ssh has reached the host. */
#define WEFT_TREE_STARTED "oshrun --daemon has started"

/* The field `host` of a frame: sent by a daemon, the daemon's host; sent by the front, the
 * receiver, all hosts, or all hosts but one. */
#define WEFT_TREE_ALL           (-1)
#define WEFT_TREE_ALL_BUT(host) (-2 - (host))

/* Maximal size of host names, with the terminating zero. */
enum { WEFT_TREE_NAME_BYTES = 64 };

enum {
    WEFT_TREE_BEAT_MS = 250, /* interval of heartbeats */
    WEFT_TREE_LIVES_MS =
        3 * WEFT_TREE_BEAT_MS,   /* a host counts as alive, and a host that cannot be reached as cut
                                    off, if it was heard of within this time */
    WEFT_TREE_PIECE_MAX = 65536, /* bytes of one OUTPUT or INPUT */
    WEFT_TREE_LINE_MAX = 8192,   /* bytes of one LINE */
    WEFT_TREE_OUTPUT_MAX = 1 << 20, /* bytes of OUTPUT that a host may send without TAKEN; then it
                                       stops reading from its PEs */
    WEFT_TREE_INPUT_MAX = 1 << 18,  /* the same for INPUT */
};

enum weft_tree_kind {
    WEFT_TREE_HELLO = 1, /* up: struct weft_tree_hello */
    WEFT_TREE_GO,        /* down: start the PEs */
    WEFT_TREE_GAVE,   /* up: struct weft_tree_exchange, then the contribution of each member on this
                         host, in the order of their numbers */
    WEFT_TREE_SHARED, /* down: struct weft_tree_exchange, then the contributions of all members */
    WEFT_TREE_PE_STATUS, /* both: one or more struct weft_tree_pe_status; up for the host's own PEs,
                            down for others */
    WEFT_TREE_OUTPUT, /* up: bytes that PE `pe` has written to its descriptor `value`, 1 or 2; none:
                         closed */
    WEFT_TREE_INPUT,  /* down: bytes for the standard input of PE 0; none: end of input */
    WEFT_TREE_TAKEN,  /* both: acknowledges `value` bytes of OUTPUT or INPUT */
    WEFT_TREE_SIGNAL, /* down: signal `value` for all PEs; `pe` is 1 if a terminal sent it */
    WEFT_TREE_CAUSE,  /* both: struct weft_tree_cause. Up: the host has begun to end the job for it,
                         or, with WEFT_ABORT_CUT, asks to end it if the other host is alive. Down:
                         the cause that the front has accepted, from any host */
    WEFT_TREE_LINE,   /* up: a line for the user, without newline. `value` is 1 if it explains why
                         this host ends the job; then the front prints it only if it has accepted
                         that cause */
    WEFT_TREE_DONE,   /* up: struct weft_tree_done */
    WEFT_TREE_BYE,    /* down: the DONE frame has arrived. Between agents: a side's last frame */
    WEFT_TREE_BEAT,   /* both: heartbeat */
    WEFT_TREE_LONG_WAIT, /* both: a long wait of PE `pe`: struct weft_long_wait_facts for entry
                            `value` & 255 of WEFT_LONG_WAITS; `value` & 256: the PE has logged it;
                            no bytes: the wait has ended. Up for the host's own PEs, down for others
                          */
    WEFT_TREE_CLOSED, /* down: descriptor `value`, 1 or 2, has no reader any more; PEs get SIGPIPE,
                         as with a closed pipe of their own */
    WEFT_TREE_LOST,   /* up, from a relay: `value` hosts from `host` on are lost or could not be
                         started; the payload is the reason as text */
};

/* The phase of a daemon. Daemon and front both keep it, and reject frames that are not allowed in
 * it. */
enum weft_tree_phase {
    WEFT_TREE_BEFORE_HELLO,
    WEFT_TREE_BEFORE_GO,
    WEFT_TREE_AT_WORK,
    WEFT_TREE_AFTER_DONE,
};

/* Return whether a daemon in this phase may send a frame of this kind, and whether its front may.
 * Only relays send LOST. */
bool weft_tree_may_rise(uint32_t kind, enum weft_tree_phase phase);
bool weft_tree_may_descend(uint32_t kind, enum weft_tree_phase phase);

struct weft_tree_hello {
    uint32_t layout; /* WEFT_TREE_LAYOUT */
    int32_t cores;   /* processors that this job may use on the host */
    int32_t pid;     /* of the daemon */
    char version[32];
};

/* The header of GAVE and SHARED. The bits of the members follow (boot/wire.h), except in an
 * exchange of all PEs, whose key is 0; then the contributions, if the status is 0. */
struct weft_tree_exchange {
    uint64_t key;
    uint32_t bytes; /* of one contribution, at most WEFT_BOOT_BLOB_MAX */
    int32_t status; /* 0, or -EPROTO: contributions differ in size */
};

/* The parsed payload of a GAVE or SHARED. */
struct weft_tree_given {
    struct weft_tree_exchange head;
    struct weft_wire_members members;
    unsigned char *contributions; /* point into the payload */
    size_t bytes;                 /* size of all contributions */
};

/* Parses a payload. Returns false if it is invalid in a job of that size. The caller checks the
 * number of contributions. */
bool weft_tree_given_read(struct weft_tree_given *given, const void *payload, size_t bytes,
                          int npes);

/* Allocates a payload with room for `count` contributions, to which given->contributions then
 * points, and stores its size in *bytes. The caller frees it. Returns NULL without memory. */
unsigned char *weft_tree_given_make(struct weft_tree_given *given, int npes, int count,
                                    size_t *bytes);

/* The entry of one PE in the control page of its host. */
struct weft_tree_pe_status {
    int32_t pe;
    int32_t pid;
    uint32_t state; /* enum weft_pe_state */
    uint32_t departures;
    int32_t exit_status;
};

/* struct weft_cause with fixed-width numbers. */
struct weft_tree_cause {
    uint32_t kind; /* enum weft_end_kind */
    int32_t pe;    /* -1: none */
    int32_t pid;
    int32_t detail;
    uint32_t state; /* enum weft_pe_state */
    int32_t unused; /* 0 */
};

/* Convert a cause to and from a payload. weft_tree_cause_read returns false if the payload is
 * invalid: if its PE, host, status or signal does not exist in a job of that size. */
struct weft_cause;
struct weft_tree_cause weft_tree_cause_make(const struct weft_cause *cause);
bool weft_tree_cause_read(struct weft_cause *cause, const void *payload, size_t bytes, int npes,
                          int nhosts);

/* Sent when all processes of this host have ended. */
struct weft_tree_done {
    int32_t status;       /* oshrun's exit status if the job had only this host */
    int32_t first_status; /* of the first PE that ended with a status other than 0; 0: none */
    int32_t first_pe;     /* that PE */
    int32_t first_pid;
    int32_t failures; /* number of PEs that ended normally with a status other than 0 */
};

/* Returns whether statuses and counts are valid for a host with `npes` PEs. The front checks
 * first_pe. */
bool weft_tree_done_is_sound(const struct weft_tree_done *done, int npes);

#endif
