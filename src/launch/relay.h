/* SPDX-License-Identifier: BSD-3-Clause */
/* A relay, where a job has more hosts than its front starts itself: it sees to a run of hosts,
 * whose first one it is on. It starts their daemons, that of its own host too, or further relays,
 * and passes frames on between them and the side above. It has no PEs and no say: what comes from
 * below goes up as it is, once it is sure that it is of one of those hosts. Without those above it
 * ends, and with it what is below. */
#ifndef WEFT_LAUNCH_RELAY_H
#define WEFT_LAUNCH_RELAY_H

#include "launch/start.h"

/* The exit status. */
int weft_relay_main(const struct weft_start *start);

#endif
