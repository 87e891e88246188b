/* SPDX-License-Identifier: BSD-3-Clause */
/* Chooses the network that UCX uses. TCP of UCX is neither encrypted nor authenticated, and a
 * stranger who connects can write any memory of this process. So UCX listens on one interface, and
 * on none with a public address, unless the user vouches for the network.
 *
 * UCX accepts no address. If it would use another address than the hosts have reached each other
 * through, it is refused, unless the user has named the interface. */
#ifndef WEFT_UCX_NETWORK_H
#define WEFT_UCX_NETWORK_H

#include <stdbool.h>
#include "transport/network.h"
#include "ucx/library.h"

enum { UCX_NAMES_BYTES = 256 };

struct ucx_network {
    char transports[UCX_NAMES_BYTES]; /* in the form of UCX_TLS */
    char devices[UCX_NAMES_BYTES];    /* in the form of UCX_NET_DEVICES */
    bool tcp;                         /* TCP is among the transports */
    int family;                       /* of the addresses used if an interface has both */
    bool either_family;               /* the user has named families */
};

/* Chooses, and adds the choice to the settings. Returns 0, or -errno with the reason in
 * options->reason. */
int ucx_network_choose(const struct weft_engine_options *options, struct ucx_network *network,
                       struct ucx_settings *settings);

/* Finds the first address at which TCP of the choice is reached. Returns 0 or -errno. */
int ucx_network_address(const struct ucx_network *network, struct sockaddr_storage *address);

/* Writes a description of the choice for a person. */
void ucx_network_describe(const struct ucx_network *network, char *text, size_t bytes);

#endif
