/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/network.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

struct prefix {
    unsigned char bytes[2], bits;
};

static bool prefix_holds(const struct prefix *prefix, const unsigned char *address) {
    unsigned mask = 0xffff0000u >> prefix->bits & 0xffff;
    unsigned have = (unsigned)address[0] << 8 | address[1];
    unsigned want = (unsigned)prefix->bytes[0] << 8 | prefix->bytes[1];
    return (have & mask) == (want & mask);
}

static bool is_private4(const unsigned char *address) {
    static const struct prefix prefixes[] = {{{127, 0}, 8},    {{10, 0}, 8},     {{172, 16}, 12},
                                             {{192, 168}, 16}, {{169, 254}, 16}, {{100, 64}, 10}};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (prefix_holds(&prefixes[i], address))
            return true;
    return false;
}

static bool is_private6(const struct in6_addr *address) {
    static const struct prefix local = {{0xfc, 0}, 7}, link = {{0xfe, 0x80}, 10};
    if (IN6_IS_ADDR_V4MAPPED(address))
        return is_private4(address->s6_addr + 12);
    return IN6_IS_ADDR_LOOPBACK(address) || prefix_holds(&local, address->s6_addr) ||
           prefix_holds(&link, address->s6_addr);
}

/* Returns the address proper, of 4 or 16 bytes. */
static const void *number_of(const struct sockaddr *address) {
    if (address->sa_family == AF_INET)
        return &((const struct sockaddr_in *)address)->sin_addr;
    return &((const struct sockaddr_in6 *)address)->sin6_addr;
}

bool weft_network_is_public(const struct sockaddr *address) {
    struct in6_addr in6;
    if (address->sa_family == AF_INET)
        return !is_private4(number_of(address));
    memcpy(&in6, number_of(address), sizeof in6);
    return !is_private6(&in6);
}

size_t weft_network_bytes(const struct sockaddr *address) {
    return address->sa_family == AF_INET    ? sizeof(struct sockaddr_in)
           : address->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
                                            : 0;
}

void weft_network_print(char *text, size_t bytes, const struct sockaddr *address) {
    if (!inet_ntop(address->sa_family, number_of(address), text, (socklen_t)bytes))
        snprintf(text, bytes, "?");
}

int weft_network_refuse(const struct weft_engine_options *options, const char *interface,
                        const struct sockaddr *address, const char *harm, const char *way) {
    char text[INET6_ADDRSTRLEN];
    weft_network_print(text, sizeof text, address);
    snprintf(options->reason, WEFT_ENGINE_TEXT_BYTES,
             "the network interface %s has the public address %s, and %s: choose a private "
             "network, or a tunnel such as WireGuard's, by %s; or set WEFT_FAR_NETWORK=trusted if "
             "strangers cannot reach it",
             interface, text, harm, way);
    return -EPERM;
}
