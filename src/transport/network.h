/* SPDX-License-Identifier: BSD-3-Clause */
/* On which addresses an engine may listen that sends in the clear. Part of each library that has
 * such an engine. */
#ifndef WEFT_TRANSPORT_NETWORK_H
#define WEFT_TRANSPORT_NETWORK_H

#include "transport/transport.h"

struct sockaddr;

/* Whether the address, of IPv4 or IPv6, is one that strangers may reach: neither loopback nor
 * private (RFC 1918, RFC 4193), link-local, or shared by a provider's customers (RFC 6598). */
bool weft_network_is_public(const struct sockaddr *address);

/* The bytes of an address of IPv4 or IPv6; 0: it is of another kind. */
size_t weft_network_bytes(const struct sockaddr *address);

/* As numbers. */
void weft_network_print(char *text, size_t bytes, const struct sockaddr *address);

/* -EPERM, with the reason in options->reason: the interface has this public address, where the
 * engine would do as `harm` says; `way` names another interface. */
int weft_network_refuse(const struct weft_engine_options *options, const char *interface,
                        const struct sockaddr *address, const char *harm, const char *way);

#endif
