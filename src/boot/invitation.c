/* SPDX-License-Identifier: BSD-3-Clause */
/* A process makes one invitation or a few, of which one leads to a job; the ports of the last
 * KEPT_MAX are kept. IPv4 addresses come first, because more of them fit in. */
#include "boot/invitation.h"
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "boot/tls_listener.h"
#include "boot/wire.h"

enum { KEPT_MAX = 8 };

static struct {
    int socket;
    uint16_t port; /* 0: unused */
} kept[KEPT_MAX];
static unsigned made;

const char *weft_invitation_interface(void) {
    const char *named = getenv(WEFT_BOOT_ENV_INTERFACE);
    return named && *named && strcmp(named, "auto") != 0 ? named : NULL;
}

static void address_pack(struct weft_invitation *invitation, const char *text, int family) {
    unsigned char address[sizeof(struct in6_addr)];
    size_t bytes = family == AF_INET ? sizeof(struct in_addr) : sizeof(struct in6_addr);
    if (inet_pton(family, text, address) != 1 ||
        invitation->bytes + 1 + bytes > sizeof invitation->packed)
        return;
    invitation->packed[invitation->bytes++] = family == AF_INET ? 4 : 6;
    memcpy(invitation->packed + invitation->bytes, address, bytes);
    invitation->bytes += (uint8_t)bytes;
}

static void port_keep(int socket, uint16_t port) {
    unsigned at = made++ % KEPT_MAX;
    if (kept[at].port)
        close(kept[at].socket);
    kept[at].socket = socket;
    kept[at].port = port;
}

void weft_invitation_make(struct weft_invitation *invitation) {
    static const int families[] = {AF_INET, AF_INET6};
    struct weft_addresses addresses = {0};
    *invitation = (struct weft_invitation){0};
    weft_addresses_add_own(&addresses, weft_invitation_interface());
    for (int family = 0; family < 2; family++)
        for (int i = 0; i < addresses.count; i++)
            address_pack(invitation, addresses.text[i], families[family]);
    int socket = addresses.count ? weft_tls_listener_reserve(&invitation->port) : -1;
    if (socket >= 0)
        port_keep(socket, invitation->port);
    else
        invitation->port = 0;
}

int weft_invitation_redeem(const struct weft_invitation *invitation) {
    for (int i = 0; i < KEPT_MAX; i++)
        if (invitation->port && kept[i].port == invitation->port) {
            kept[i].port = 0;
            return kept[i].socket;
        }
    return -1;
}

/* Checks lengths, because the invitation may be forged. */
void weft_invitation_read(const struct weft_invitation *invitation,
                          struct weft_addresses *addresses) {
    size_t end = invitation->bytes;
    end = end < sizeof invitation->packed ? end : sizeof invitation->packed;
    for (size_t at = 0; at < end;) {
        int family = invitation->packed[at] == 4 ? AF_INET : AF_INET6;
        size_t bytes = family == AF_INET ? sizeof(struct in_addr) : sizeof(struct in6_addr);
        char text[WEFT_ADDRESS_BYTES];
        if (at + 1 + bytes > end)
            return;
        if (inet_ntop(family, invitation->packed + at + 1, text, sizeof text))
            weft_addresses_add(addresses, text);
        at += 1 + bytes;
    }
}
