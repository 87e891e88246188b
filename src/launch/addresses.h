/* SPDX-License-Identifier: BSD-3-Clause */
/* The addresses from which this host speaks to others. */
#ifndef WEFT_LAUNCH_ADDRESSES_H
#define WEFT_LAUNCH_ADDRESSES_H

#include <pthread.h>
#include <stdbool.h>
#include "boot/address.h"

/* The addresses from which this host would speak to others, "" where that is not known, by the
 * names that ssh takes; NULL: none is asked for. They are looked up side by side, as a name may
 * take seconds. */
struct weft_addresses_way {
    const char *name;
    char text[WEFT_ADDRESS_BYTES];
    pthread_t thread;
    bool looks;
};
void weft_addresses_find_ways(struct weft_addresses_way *ways, int count);

#endif
