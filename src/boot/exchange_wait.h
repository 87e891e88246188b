/* SPDX-License-Identifier: BSD-3-Clause */
/* Watches a wait for PEs that have not come to an exchange. Like waits of core (core/hang.c), a
 * long wait is published, and after WEFT_HANG_SECONDS one line names the PEs that are missing. A
 * wait that never sleeps is not watched. */
#ifndef WEFT_BOOT_EXCHANGE_WAIT_H
#define WEFT_BOOT_EXCHANGE_WAIT_H

#include <stdint.h>

struct weft_long_wait;

struct weft_exchange_wait {
    const int *pes;     /* members; NULL: all PEs of the job */
    int count;          /* number of members */
    uint32_t which;     /* distinguishes exchanges in calls of one name */
    const char *server; /* name of the process that gathers contributions */
    struct weft_long_wait *shown;
    uint64_t since_ns, look_ns;
    uint8_t looks, failures;
};

/* Call it before each sleep of the wait. */
void weft_exchange_wait_turn(struct weft_exchange_wait *wait);

/* Ends the wait and withdraws what was published. */
void weft_exchange_wait_end(struct weft_exchange_wait *wait);

#endif
