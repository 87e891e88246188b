/* SPDX-License-Identifier: BSD-3-Clause */
/* oshrun --daemon: the launcher on one host of a job on several. The front (launch/front.h), or a
 * relay (launch/relay.h), starts it and writes the start text (launch/start.h) to its standard
 * input.
 *
 * daemon.c has the main loop and sends frames to the front; daemon_hear.c handles frames from it.
 */
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
    bool heard_cause; /* the front has sent the cause of the end */
    int64_t over_ms;  /* time at which all PEs of this host had ended; 0: they have not */
    bool bye;
};

/* Runs the daemon. Returns its exit status. */
int weft_daemon_main(void);

/* Handles a frame from the front. Treats the front as lost if the frame is invalid or not allowed
 * in this phase. */
void weft_daemon_hear(struct weft_daemon *daemon, const struct weft_frame *frame,
                      const void *payload);

#endif
