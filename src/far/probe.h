/* SPDX-License-Identifier: BSD-3-Clause */
/* Detects that the network between this host and another one is cut.
 *
 * A peer that acknowledges no messages may be stopped or may get no processor. The kernel of its
 * host still answers: it refuses a connection to a port on which no process listens. So another
 * host counts as unreachable if for WEFT_HOST_TIMEOUT neither a message to it was acknowledged nor
 * such a connection refused, or if the engine has given up a channel to it for as long. This is
 * reported to oshrun or the agent (boot/agent.h), which knows whether the host is alive. */
#ifndef WEFT_FAR_PROBE_H
#define WEFT_FAR_PROBE_H

#include <netinet/in.h>

/* The address at which a PE can be probed, published in its endpoint: of IPv4 or IPv6, with a port
 * that this PE has bound but does not listen on. If sin6_family is 0, the PE cannot be probed. */
typedef struct sockaddr_in6 weft_probe_address;

/* Binds the port and writes its address. Does nothing if the engine has no IP address or the job
 * has one host. */
void weft_probes_open(weft_probe_address *mine);

/* Starts watching. `address_of` returns a PE's address, which must stay valid. Returns 0, or
 * -ENOMEM after logging it. */
int weft_probes_start(const weft_probe_address *(*address_of)(int pe));

/* Called by one thread, as often as it likes: the work is done every 100 ms. */
void weft_probes_look(void);

/* Frees everything. Must not be called while a thread is in weft_probes_look. */
void weft_probes_close(void);

#endif
