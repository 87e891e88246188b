/* SPDX-License-Identifier: BSD-3-Clause */
/* The connection of a daemon or a relay to the node above it: a link (boot/host_link.h), and
 * standard input, which ends when the other side ends. A front may be stopped by its terminal, and
 * its silence is then accepted; a relay has no terminal. */
#ifndef WEFT_LAUNCH_UPLINK_H
#define WEFT_LAUNCH_UPLINK_H

#include "boot/address.h"
#include "boot/host_link.h"
#include "launch/start.h"

struct weft_uplink {
    struct weft_host_link link;
    struct weft_network network;      /* network on which this host reaches the other side */
    char address[WEFT_ADDRESS_BYTES]; /* this host's own numeric address on it; "": unknown or
                                         link-local */
};

/* Connects and proves the key, which may take seconds. Returns 0, or -errno after logging the
 * reason. */
int weft_uplink_open(struct weft_uplink *uplink, const struct weft_start *start);

/* weft_uplink_polls fills the entries for poll, weft_uplink_patience_ms returns the time until the
 * next heartbeat, and weft_uplink_turn handles the events. Then read frames from the link. */
enum { WEFT_UPLINK_POLLS = 2 };
void weft_uplink_polls(const struct weft_uplink *uplink, struct pollfd polls[WEFT_UPLINK_POLLS]);
int weft_uplink_patience_ms(const struct weft_uplink *uplink);
void weft_uplink_turn(struct weft_uplink *uplink, const struct pollfd polls[WEFT_UPLINK_POLLS]);

#endif
