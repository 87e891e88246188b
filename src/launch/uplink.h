/* SPDX-License-Identifier: BSD-3-Clause */
/* The connection of a daemon or a relay with what is above it: a link (boot/host_link.h), and the
 * process's standard input, whose end is that of the other side, too. A front that is stopped is
 * waited for, a relay is not: it has no terminal. */
#ifndef WEFT_LAUNCH_UPLINK_H
#define WEFT_LAUNCH_UPLINK_H

#include "boot/address.h"
#include "boot/host_link.h"
#include "launch/start.h"

struct weft_uplink {
    struct weft_host_link link;
    struct weft_network network;      /* by which this host speaks to the other side, */
    char address[WEFT_ADDRESS_BYTES]; /* and its own address there, numeric; "": it is not known, or
                                         link-local */
};

/* Connects, and proves the key. It may take seconds. 0 or -errno, said. */
int weft_uplink_open(struct weft_uplink *uplink, const struct weft_start *start);

/* What to poll for, when it is time for the next beat, and what follows after a poll. Then take
 * frames from the link. */
enum { WEFT_UPLINK_POLLS = 2 };
void weft_uplink_polls(const struct weft_uplink *uplink, struct pollfd polls[WEFT_UPLINK_POLLS]);
int weft_uplink_patience_ms(const struct weft_uplink *uplink);
void weft_uplink_turn(struct weft_uplink *uplink, const struct pollfd polls[WEFT_UPLINK_POLLS]);

#endif
