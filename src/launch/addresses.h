/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the addresses of this host from which other hosts are reached. */
#ifndef WEFT_LAUNCH_ADDRESSES_H
#define WEFT_LAUNCH_ADDRESSES_H

#include <pthread.h>
#include <stdbool.h>
#include "boot/address.h"

/* For each host name (as given to ssh; NULL: the host is skipped), finds the address from which
 * this host reaches it, or "" if that is unknown. All PEs of a job use one address family. All
 * addresses are therefore IPv4 if every resolved host has an IPv4 route, otherwise IPv6 if every
 * one has an IPv6 route. One thread per name does the lookup, which may take seconds. */
struct weft_addresses_way {
    const char *name;
    char text[WEFT_ADDRESS_BYTES];
    char of_family[2][WEFT_ADDRESS_BYTES]; /* IPv4, IPv6; "": no route */
    pthread_t thread;
    bool looks;
};
void weft_addresses_find_ways(struct weft_addresses_way *ways, int count);

#endif
