/* SPDX-License-Identifier: BSD-3-Clause */
/* oshrun --daemon: the launcher of one host of several. The front (launch/front.h) starts it, and
 * writes what it is to do to its standard input (launch/start.h).
 *
 * daemon.c is its life and what it says, daemon_hear.c what the front says. */
#ifndef WEFT_LAUNCH_DAEMON_H
#define WEFT_LAUNCH_DAEMON_H

#include "boot/pe_status.h"
#include "launch/forward.h"
#include "launch/run.h"
#include "launch/uplink.h"

struct weft_daemon {
    struct weft_start start;
    struct weft_run run;
    struct weft_uplink front;
    struct weft_forward *forward;
    struct weft_pe_status *pe_status;
    enum weft_tree_phase phase;
    bool heard_cause; /* the end has been told by the front */
    int64_t over_ms;  /* since when all PEs here are over; 0: they are not */
    bool bye;
};

/* The exit status. */
int weft_daemon_main(void);

/* Does what a frame of the front's says. A frame that does not belong to the phase or makes no
 * sense loses the front. */
void weft_daemon_hear(struct weft_daemon *daemon, const struct weft_frame *frame,
                      const void *payload);

#endif
