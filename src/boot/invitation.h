/* SPDX-License-Identifier: BSD-3-Clause */
/* The addresses and the port at which PEs on other hosts can connect to PE 0. An invitation is
 * distributed with the job's key, before it is known whether there are other hosts. So its port is
 * bound, but PE 0 listens on it only if there are (boot/callers.h). */
#ifndef WEFT_BOOT_INVITATION_H
#define WEFT_BOOT_INVITATION_H

#include <stdint.h>
#include "boot/address.h"

/* Packed addresses, as many as there is room for: a byte 4 and an IPv4 address, or 6 and an IPv6
 * address. */
struct weft_invitation {
    uint16_t port; /* 0: none */
    uint8_t bytes; /* size of the addresses */
    uint8_t packed[77];
};

/* Binds a port and lists the addresses of this host, or of the interface that WEFT_INTERFACE names.
 * Without a network the port is 0. */
void weft_invitation_make(struct weft_invitation *invitation);

/* Returns the socket of the port if this process has made the invitation, otherwise -1. The caller
 * closes the socket. */
int weft_invitation_redeem(const struct weft_invitation *invitation);

/* Unpacks the addresses. */
void weft_invitation_read(const struct weft_invitation *invitation,
                          struct weft_addresses *addresses);

/* Returns the interface that the user has chosen for connections between hosts, or NULL if none. */
const char *weft_invitation_interface(void);

#endif
