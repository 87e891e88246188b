/* SPDX-License-Identifier: BSD-3-Clause */
/* Of an interface with several addresses the first is taken that is allowed, of IPv4 rather than of
 * IPv6. */
#include "tcp/listen.h"
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

static const char elsewhere[] = "its addresses on hosts' list, or by WEFT_INTERFACE,";

static bool has_address(const struct ifaddrs *one, const char *interface, int family) {
    return one->ifa_addr && one->ifa_addr->sa_family == family && one->ifa_flags & IFF_UP &&
           strcmp(one->ifa_name, interface) == 0;
}

/* -EPERM: all are public. -ENODEV: there is none. */
static int address_find(struct weft_engine_end *end, const struct ifaddrs *all) {
    static const int families[] = {AF_INET, AF_INET6};
    static const char harm[] = "what PEs send would go over it unencrypted";
    const struct ifaddrs *refused = NULL;
    for (int i = 0; i < 2; i++) {
        for (const struct ifaddrs *one = all; one; one = one->ifa_next) {
            if (!has_address(one, end->interface, families[i]))
                continue;
            memcpy(&end->own.at, one->ifa_addr, weft_network_bytes(one->ifa_addr));
            if (end->options.trusted || !weft_network_is_public(one->ifa_addr))
                return 0;
            refused = refused ? refused : one;
        }
    }
    return refused ? weft_network_refuse(&end->options, refused->ifa_name, refused->ifa_addr, harm,
                                         elsewhere)
                   : -ENODEV;
}

static int address_choose(struct weft_engine_end *end) {
    struct ifaddrs *all;
    if (getifaddrs(&all) != 0)
        return -errno;
    int error = address_find(end, all);
    freeifaddrs(all);
    if (error == -ENODEV)
        snprintf(end->options.reason, WEFT_ENGINE_TEXT_BYTES,
                 "the network interface %s is not up, or has no address: name another one by %s",
                 end->interface, elsewhere);
    return error;
}

int weft_tcp_listen(struct weft_engine_end *end) {
    struct sockaddr *own = (struct sockaddr *)&end->own.at;
    const char *network = end->options.network ? end->options.network : "lo";
    socklen_t bytes = sizeof end->own.at;
    snprintf(end->interface, sizeof end->interface, "%s", network);
    int error = address_choose(end);
    if (error)
        return error;
    end->own.at.sin6_port = 0;
    end->listener = socket(own->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (end->listener < 0 || bind(end->listener, own, (socklen_t)weft_network_bytes(own)) != 0 ||
        listen(end->listener, SOMAXCONN) != 0 || getsockname(end->listener, own, &bytes) != 0)
        return -errno;
    return 0;
}
