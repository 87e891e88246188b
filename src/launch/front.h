/* SPDX-License-Identifier: BSD-3-Clause */
/* The front of a job on several hosts. It has no PEs, but a daemon on each host. One thread sleeps
 * in poll and does everything except writing output. The front ends the job for the first cause
 * that it receives, and ends itself when every host is done or lost.
 *
 * front.c has the main loop, front_start.c the start text, front_hear.c the handling of frames,
 * front_end.c the end. */
#ifndef WEFT_LAUNCH_FRONT_H
#define WEFT_LAUNCH_FRONT_H

#include <stdarg.h>
#include "boot/host_exchange.h"
#include "boot/pe_status.h"
#include "launch/branch.h"
#include "launch/writer.h"

struct weft_front_host {
    const char *name; /* for error lines */
    int npes, first_pe;
    int child; /* index of the branch's child that serves the host */
    enum {
        WEFT_HOST_STARTED,
        WEFT_HOST_ANSWERED, /* its HELLO has arrived */
        WEFT_HOST_DONE,     /* its PEs have ended */
        WEFT_HOST_LOST,     /* silent or disconnected */
    } state;
    int32_t untaken; /* bytes of its output that the writer has not yet written */
    struct weft_tree_done done;
};

enum weft_front_phase {
    WEFT_FRONT_STARTING,
    WEFT_FRONT_RUNNING, /* all hosts have answered and start their PEs */
    WEFT_FRONT_ENDING,  /* there is a cause */
    WEFT_FRONT_OVER,    /* no host is waited for */
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
    int64_t phase_ends_ms; /* in STARTING and ENDING */
    int64_t time_is_up_ms; /* for --timeout; 0: none */

    struct weft_control *control;     /* private page with all PEs' states, reported by hosts */
    struct weft_pe_status *pe_status; /* writes states to `control` */
    struct weft_host_exchanges exchanges;

    bool input_over;
    int32_t input_untaken;

    struct weft_cause cause;
    int cause_host;         /* writes the line about the cause; -1: the front */
    bool told;              /* the line about the cause has been written */
    int end_signal;         /* last deadly signal */
    bool end_by_terminal;   /* it came from the terminal */
    int64_t signal_ends_ms; /* time at which the signal has to have ended the job; 0: none */
    int first_host;         /* first host that was done with a PE's status other than 0; -1: none */
    int status;             /* if the job could not be started */
};

/* Runs a job whose host list names other hosts. Returns the exit status. */
int weft_front_main(const struct weft_options *options);

/* Handles what is due: gives up hosts that have not answered in time, and ends a job that takes too
 * long. */
void weft_front_time(struct weft_front *front);

/* In front_start.c. Starts the children. Returns 0, or -errno after logging the reason. */
int weft_front_start(struct weft_front *front, const struct weft_branch_plan *plan);

/* In front_hear.c: handles frames of the branch. weft_front_share sends out the result of an
 * exchange. */
extern const struct weft_branch_above weft_front_above;
void weft_front_share(void *front, int host, const void *payload, size_t bytes);

/* Sends a frame to a host, to WEFT_TREE_ALL, or to WEFT_TREE_ALL_BUT one. */
static inline void weft_front_send(struct weft_front *front, int to, struct weft_frame frame,
                                   const void *payload) {
    frame.host = to;
    weft_branch_route(&front->branch, &frame, payload);
}

/* In front_end.c. Gives up the start of the job because of this host, and logs the reason. */
void weft_front_refuse(struct weft_front *front, int host, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Begins the end of the job; only the first cause counts, and the signal that `host` adds to it
 * later. `host` writes the line about it; -1: the front does. */
void weft_front_end(struct weft_front *front, struct weft_cause cause, int host);

/* Marks a range of hosts as lost because of `why`: they are silent, or their connection has ended.
 */
void weft_front_lose(struct weft_front *front, int first, int count, const char *why);

/* Ends what still runs on all hosts, and returns oshrun's exit status. */
int weft_front_finish(struct weft_front *front);

#endif
