/* SPDX-License-Identifier: BSD-3-Clause */
/* The front of a job on several hosts: it has no PEs of its own, and one daemon on each host. One
 * thread sleeps in poll and does all but write the output. It begins to end the job by the first
 * cause that it hears of, and is over when every host is done or lost.
 *
 * front.c has the loop, front_start.c what daemons are started with, front_hear.c what they say,
 * front_end.c the end. */
#ifndef WEFT_LAUNCH_FRONT_H
#define WEFT_LAUNCH_FRONT_H

#include <stdarg.h>
#include "boot/host_exchange.h"
#include "boot/pe_status.h"
#include "launch/branch.h"
#include "launch/writer.h"

struct weft_front_host {
    const char *name; /* for messages */
    int npes, first_pe;
    int child; /* of the branch, by which it is reached */
    enum {
        WEFT_HOST_STARTED,
        WEFT_HOST_ANSWERED, /* with its HELLO */
        WEFT_HOST_DONE,     /* its PEs are over */
        WEFT_HOST_LOST,     /* it was silent, or its connection has ended */
    } state;
    int32_t untaken; /* bytes of its output that wait for the writer */
    struct weft_tree_done done;
};

enum weft_front_phase {
    WEFT_FRONT_STARTING,
    WEFT_FRONT_RUNNING, /* all hosts have answered, and start their PEs */
    WEFT_FRONT_ENDING,  /* before its time: there is a cause */
    WEFT_FRONT_OVER,    /* nobody is waited for any more */
};

struct weft_front {
    const struct weft_options *options;
    struct weft_signals signals;
    int npes, nhosts;
    const int32_t *host_of; /* of each PE */
    struct weft_front_host *host;
    const char **name; /* of each host */
    struct weft_branch branch;
    struct weft_writer *writer;

    enum weft_front_phase phase;
    int64_t phase_ends_ms; /* STARTING, ENDING */
    int64_t time_is_up_ms; /* --timeout; 0: none */

    struct weft_control
        *control; /* what hosts tell of their PEs, in a page of this process alone */
    struct weft_pe_status *pe_status; /* which writes it there */
    struct weft_host_exchanges exchanges;

    bool input_over;
    int32_t input_untaken;

    struct weft_cause cause;
    int cause_host;         /* which began the end; -1: the front did */
    bool told;              /* the person knows the cause */
    int end_signal;         /* the last deadly one, */
    bool end_by_terminal;   /* and whether it came from there */
    int64_t signal_ends_ms; /* when it is to have ended the job; 0: never */
    int first_host;         /* that was done with another status than 0; -1: none */
    int status;             /* if the job could not be started */
};

/* Runs the job of a list with other hosts on it; the exit status. */
int weft_front_main(const struct weft_options *options);

/* Does what is due by now: gives up hosts that have not answered, and ends what has taken too long.
 */
void weft_front_time(struct weft_front *front);

/* front_start.c. 0 or -errno, said. */
int weft_front_start(struct weft_front *front, const struct weft_branch_plan *plan);

/* front_hear.c: of the branch; and sends out an exchange to which all have given. */
extern const struct weft_branch_above weft_front_above;
void weft_front_share(void *front, int host, const void *payload, size_t bytes);

/* Sends a frame to a host, to WEFT_TREE_ALL, or to WEFT_TREE_ALL_BUT one. */
static inline void weft_front_send(struct weft_front *front, int to, struct weft_frame frame,
                                   const void *payload) {
    frame.host = to;
    weft_branch_route(&front->branch, &frame, payload);
}

/* front_end.c. Nothing has been started, and nothing will be, because of this host: says why. */
void weft_front_refuse(struct weft_front *front, int host, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Begins the end, of which only the first cause counts; `host` has said it, -1: the front does. */
void weft_front_end(struct weft_front *front, struct weft_cause cause, int host);

/* A run of hosts is silent, or the connection to the first of them has ended: why. */
void weft_front_lose(struct weft_front *front, int first, int count, const char *why);

/* Ends what is left on all hosts, and returns oshrun's exit status. */
int weft_front_finish(struct weft_front *front);

#endif
