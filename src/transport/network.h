/* SPDX-License-Identifier: BSD-3-Clause */
/* Decides at which addresses an engine without encryption may listen. Linked into each library that
 * has such an engine. */
#ifndef WEFT_TRANSPORT_NETWORK_H
#define WEFT_TRANSPORT_NETWORK_H

#include "transport/transport.h"

struct sockaddr;

/* Returns whether strangers may reach the address, of IPv4 or IPv6: it is neither loopback nor
 * private (RFC 1918, RFC 4193), link-local, or shared by a provider's customers (RFC 6598). */
bool weft_network_is_public(const struct sockaddr *address);

/* Returns the size of an address of IPv4 or IPv6, or 0 for any other kind. */
size_t weft_network_bytes(const struct sockaddr *address);

/* Writes the address in numeric form. */
void weft_network_print(char *text, size_t bytes, const struct sockaddr *address);

/* Writes to options->reason that the interface has this public address, that the engine would do
 * what `harm` says, and how to choose another interface (`way`). Returns -EPERM. */
int weft_network_refuse(const struct weft_engine_options *options, const char *interface,
                        const struct sockaddr *address, const char *harm, const char *way);

#endif
