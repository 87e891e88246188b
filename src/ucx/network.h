/* SPDX-License-Identifier: BSD-3-Clause */
/* Over which network UCX goes, and which it must not go over: TCP of UCX is neither encrypted nor
 * authenticated, and a stranger who connects can write any memory of this process. So it listens
 * on one interface, and on none with a public address, unless the user vouches for that.
 * UCX cannot be told an address: where it would take another one than that by which hosts have
 * reached each other it is refused, unless the user has named the interface. */
#ifndef WEFT_UCX_NETWORK_H
#define WEFT_UCX_NETWORK_H

#include <stdbool.h>
#include "transport/network.h"
#include "ucx/library.h"

enum { UCX_NAMES_BYTES = 256 };

struct ucx_network {
    char transports[UCX_NAMES_BYTES]; /* as UCX_TLS has it */
    char devices[UCX_NAMES_BYTES];    /* as UCX_NET_DEVICES has it */
    bool tcp;                         /* is among the transports */
    int family;                       /* of addresses that it takes where an interface has both */
    bool either_family;               /* the user has named families */
};

/* 0, with the choice added to the settings; or -errno, with the reason in options->reason. */
int ucx_network_choose(const struct weft_engine_options *options, struct ucx_network *network,
                       struct ucx_settings *settings);

/* The first address by which TCP of the choice is reached. 0 or -errno. */
int ucx_network_address(const struct ucx_network *network, struct sockaddr_storage *address);

/* What was chosen, for a person. */
void ucx_network_describe(const struct ucx_network *network, char *text, size_t bytes);

#endif
