/* SPDX-License-Identifier: BSD-3-Clause */
/* A relay: a process between the front and daemons, for jobs with more hosts than the front serves
 * itself. It serves a contiguous range of hosts and runs on the first of them. It starts their
 * daemons, including its own host's, or further relays, and forwards frames in both directions. It
 * has no PEs and decides nothing: a frame from below is forwarded unchanged after a check that it
 * comes from a host of the range. If the connection to the front's side ends, the relay ends, and
 * with it all processes below. */
#ifndef WEFT_LAUNCH_RELAY_H
#define WEFT_LAUNCH_RELAY_H

#include "launch/start.h"

/* Runs the relay. Returns its exit status. */
int weft_relay_main(const struct weft_start *start);

#endif
