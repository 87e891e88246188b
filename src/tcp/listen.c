/* SPDX-License-Identifier: BSD-3-Clause */
#include "tcp/listen.h"
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include "base/clock.h"
#include "base/descriptor.h"
#include "base/machine.h"

/* The kernel does not let an IPv6 address be used until it has checked that no other host has it.
 */
enum { USABLE_MS_MAX = 3000, AGAIN_MS = 50 };

static const char another[] = "its address in --hosts, or, without oshrun, by WEFT_INTERFACE";

/* If hosts are pretended, an end is reached on this host only, at the loopback address. */
static int address_choose(struct weft_engine_end *end) {
    static const char harm[] = "what PEs send would go over it unencrypted";
    const struct weft_engine_options *options = &end->options;
    struct sockaddr_in loopback = {.sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const struct sockaddr *address =
        options->network ? options->address : (const struct sockaddr *)&loopback;
    snprintf(end->interface, sizeof end->interface, "%s",
             options->network ? options->network : "lo");
    if (!address) {
        snprintf(options->reason, WEFT_ENGINE_TEXT_BYTES,
                 "the network interface %s is not up, or has no address: name another one by %s",
                 end->interface, another);
        return -ENODEV;
    }
    if (!options->trusted && weft_network_is_public(address))
        return weft_network_refuse(options, end->interface, address, harm, another);
    memcpy(&end->own.at, address, weft_network_bytes(address));
    end->own.at.sin6_port = 0;
    return 0;
}

static int address_take(const struct weft_engine_end *end) {
    const struct sockaddr *own = (const struct sockaddr *)&end->own.at;
    uint64_t until_ns = weft_clock_ns() + USABLE_MS_MAX * WEFT_NS_PER_MS;
    char text[INET6_ADDRSTRLEN];
    while (bind(end->listener, own, (socklen_t)weft_network_bytes(own)) != 0) {
        int error = -errno;
        if (error == -EADDRNOTAVAIL && weft_clock_ns() < until_ns) {
            weft_clock_sleep_ms(AGAIN_MS);
            continue;
        }
        weft_network_print(text, sizeof text, own);
        snprintf(end->options.reason, WEFT_ENGINE_TEXT_BYTES,
                 "no port can be taken at the address %s of %s, by which this host has reached "
                 "another one: %s%s",
                 text, end->interface, strerror(-error), weft_remedy(error).text);
        return error;
    }
    return 0;
}

int weft_tcp_listen(struct weft_engine_end *end) {
    struct sockaddr *own = (struct sockaddr *)&end->own.at;
    socklen_t bytes = sizeof end->own.at;
    int error = address_choose(end);
    if (error)
        return error;
    end->listener =
        weft_descriptor_keep(socket(own->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (end->listener < 0)
        return -errno;
    error = address_take(end);
    if (error)
        return error;
    if (listen(end->listener, SOMAXCONN) != 0 || getsockname(end->listener, own, &bytes) != 0)
        return -errno;
    return 0;
}
