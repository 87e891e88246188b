/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses of this host in its networks, and the names of its interfaces. */
#ifndef WEFT_BOOT_ADDRESS_H
#define WEFT_BOOT_ADDRESS_H

#include <netinet/in.h>
#include <stddef.h>

enum {
    WEFT_ADDRESS_BYTES = INET6_ADDRSTRLEN,
    WEFT_ADDRESSES_MAX = 32,
    WEFT_INTERFACE_BYTES = 16 /* of an interface's name; IF_NAMESIZE */
};

struct sockaddr;

/* Numeric, in the order in which others are to try them; none stands there twice. */
struct weft_addresses {
    int count;
    char text[WEFT_ADDRESSES_MAX][WEFT_ADDRESS_BYTES];
};

/* This host's end in the network of the job. */
struct weft_network {
    char interface[WEFT_INTERFACE_BYTES]; /* "": not known */
    struct sockaddr_in6 own;              /* or a sockaddr_in; of no family: not known */
};

/* Adds one; "" is none. */
void weft_addresses_add(struct weft_addresses *addresses, const char *text);

/* Adds those of this host but for its loopback; of one interface, where `only` names it. */
void weft_addresses_add_own(struct weft_addresses *addresses, const char *only);

/* As text; "" of other kinds, and of link-local ones, which mean nothing without an interface whose
 * name the other side gives. */
void weft_address_print(char text[WEFT_ADDRESS_BYTES], const struct sockaddr *address);

/* IPv4 within IPv6, as a socket of both has it, becomes IPv4. */
void weft_address_unmap(struct sockaddr_storage *address);

/* Finds the network that a connection to another host uses: its own address there, without a port,
 * and the interface that has this address. If `wanted` names another interface, the network is that
 * interface and its first address (IPv4 before IPv6, link-local IPv6 last), or no address if it has
 * none. What is not found stays empty. */
void weft_network_find(struct weft_network *network, int socket, const char *wanted);

#endif
