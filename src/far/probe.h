/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether the network between this host and the others still carries anything.
 *
 * A peer that acknowledges no messages may be stopped, or get no processor. The kernel of its host
 * answers all the same: it refuses a connection to a port at which nobody listens. So another host
 * is out of reach when for WEFT_HOST_TIMEOUT neither a message to it was acknowledged nor such a
 * connection refused, or when the engine has given up a channel there for as long. That is told to
 * the launcher, who knows whether the host lives. */
#ifndef WEFT_FAR_PROBE_H
#define WEFT_FAR_PROBE_H

#include <netinet/in.h>

/* Where a PE can be probed, as it shows to all: an address of IPv4 or IPv6, and a port that is this
 * PE's and at which it does not listen. sin6_family is 0: nowhere. */
typedef struct sockaddr_in6 weft_probe_address;

/* Takes the port. Nothing where the engine has no address, or there is one host alone. */
void weft_probes_open(weft_probe_address *mine);

/* With the ends of all PEs, which stay the caller's. 0 or -ENOMEM, logged. */
int weft_probes_start(const weft_probe_address *(*end_of)(int pe));

/* Called by one thread, as often as it likes; now and then there is something to do. */
void weft_probes_look(void);

/* Gives back all. No thread looks any more. */
void weft_probes_close(void);

#endif
