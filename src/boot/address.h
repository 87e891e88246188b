/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the addresses of this host on its networks, and the names of its interfaces. */
#ifndef WEFT_BOOT_ADDRESS_H
#define WEFT_BOOT_ADDRESS_H

#include <netinet/in.h>
#include <stddef.h>

enum {
    WEFT_ADDRESS_BYTES = INET6_ADDRSTRLEN,
    WEFT_ADDRESSES_MAX = 32,
    WEFT_INTERFACE_BYTES = 16 /* of an interface's name; equals IF_NAMESIZE */
};

struct sockaddr;

/* Numeric addresses without duplicates, in the order in which other hosts try them. */
struct weft_addresses {
    int count;
    char text[WEFT_ADDRESSES_MAX][WEFT_ADDRESS_BYTES];
};

/* This host's connection to the network of the job. */
struct weft_network {
    char interface[WEFT_INTERFACE_BYTES]; /* "": unknown */
    struct sockaddr_in6 own;              /* may contain a sockaddr_in; AF_UNSPEC: unknown */
};

/* Adds an address; ignores "". */
void weft_addresses_add(struct weft_addresses *addresses, const char *text);

/* Adds the addresses of this host without those of the loopback interface. If `only` is not NULL,
 * adds those of this interface. */
void weft_addresses_add_own(struct weft_addresses *addresses, const char *only);

/* Writes an address as text. Writes "" if it is neither IPv4 nor IPv6, or if it is link-local,
 * because such an address needs the other host's name of the interface. */
void weft_address_print(char text[WEFT_ADDRESS_BYTES], const struct sockaddr *address);

/* Finds the network that a connection to another host uses: its own address there, without a port,
 * and the interface that has this address. If `wanted` names another interface, the network is that
 * interface and its first address (IPv4 before IPv6, link-local IPv6 last), or no address if it has
 * none. Fields that are not found stay empty. */
void weft_network_find(struct weft_network *network, int socket, const char *wanted);

#endif
