/* SPDX-License-Identifier: BSD-3-Clause */
/* Where PEs on other hosts can call PE 0. An invitation is made before anybody knows whether there
 * are any, and goes round with the key of the job. So its port is taken, and nobody listens there
 * until PE 0 has reason to (boot/callers.h). */
#ifndef WEFT_BOOT_INVITATION_H
#define WEFT_BOOT_INVITATION_H

#include <stdint.h>
#include "boot/address.h"

/* Packed: 4 and an address of IPv4, or 6 and one of IPv6, as often as there is room for. */
struct weft_invitation {
    uint16_t port; /* 0: nobody can call */
    uint8_t bytes; /* of the addresses */
    uint8_t packed[77];
};

/* Takes a port and lists the addresses of this host, or of the interface that WEFT_INTERFACE names.
 * Where there is no network, nobody can call. */
void weft_invitation_make(struct weft_invitation *invitation);

/* The socket that has the port, if this process has made the invitation; it is the caller's from
 * here on. -1: it has not. */
int weft_invitation_redeem(const struct weft_invitation *invitation);

/* Lists its addresses. */
void weft_invitation_read(const struct weft_invitation *invitation,
                          struct weft_addresses *addresses);

/* The interface that the user wants hosts to reach each other by; NULL: the user does not say. */
const char *weft_invitation_interface(void);

#endif
