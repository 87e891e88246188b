/* SPDX-License-Identifier: BSD-3-Clause */
/* The addresses from which this host speaks to others. */
#ifndef WEFT_LAUNCH_ADDRESSES_H
#define WEFT_LAUNCH_ADDRESSES_H

#include <pthread.h>
#include <stdbool.h>
#include "boot/address.h"

/* Finds the addresses from which this host would speak to others, "" where that is not known, by
 * the names that ssh takes; NULL: none is asked for. PEs of one job reach each other by IPv4 or by
 * IPv6, so all addresses are of IPv4 if all names that are known lead to one, else of IPv6 if all
 * do. The names are looked up side by side, as a name may take seconds. */
struct weft_addresses_way {
    const char *name;
    char text[WEFT_ADDRESS_BYTES];
    char of_family[2][WEFT_ADDRESS_BYTES]; /* by IPv4, by IPv6; "": there is none */
    pthread_t thread;
    bool looks;
};
void weft_addresses_find_ways(struct weft_addresses_way *ways, int count);

#endif
