/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses of this host in its networks, and the names of its interfaces. */
#ifndef WEFT_BOOT_ADDRESS_H
#define WEFT_BOOT_ADDRESS_H

#include <netinet/in.h>
#include <stddef.h>

enum { WEFT_ADDRESS_BYTES = INET6_ADDRSTRLEN, WEFT_ADDRESSES_MAX = 32 };

struct sockaddr;

/* Numeric, in the order in which others are to try them; none stands there twice. */
struct weft_addresses {
    int count;
    char text[WEFT_ADDRESSES_MAX][WEFT_ADDRESS_BYTES];
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

/* The interface that has the own end of a connection; "": it is not known. */
void weft_address_interface(int socket, char *name, size_t bytes);

#endif
