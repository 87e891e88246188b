/* SPDX-License-Identifier: BSD-3-Clause */
/* Waits for PEs that are to come to an exchange. Like those of core (core/hang.c), one that lasts
 * is shown to all, and after WEFT_HANG_SECONDS there is one line on who has not come. A wait that
 * never sleeps has no part in this. */
#ifndef WEFT_BOOT_EXCHANGE_WAIT_H
#define WEFT_BOOT_EXCHANGE_WAIT_H

#include <stdint.h>

struct weft_long_wait;

struct weft_exchange_wait {
    const int *pes;     /* that take part; NULL: all of the job */
    int count;          /* of pes */
    uint32_t which;     /* tells apart exchanges in calls of one name */
    const char *server; /* that gathers what PEs give, and may be wait itself */
    struct weft_long_wait *shown;
    uint64_t since_ns, look_ns;
    uint8_t looks, failures;
};

/* Called before each sleep of the wait. */
void weft_exchange_wait_turn(struct weft_exchange_wait *wait);

/* Ends the wait: nobody sees it any more. */
void weft_exchange_wait_end(struct weft_exchange_wait *wait);

#endif
