/* SPDX-License-Identifier: BSD-3-Clause */
/* The hosts of a job, and where its PEs are. A PE copies this from the control page when it
 * attaches, because any PE can write over the page; oshrun knows it and makes the page of it. A job
 * of one host has host 0 alone, whose name nobody needs. */
#ifndef WEFT_BOOT_HOSTS_H
#define WEFT_BOOT_HOSTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "boot/address.h"

#define WEFT_HOST_NAME_BYTES 64 /* with the end */

struct weft_host {
    char name[WEFT_HOST_NAME_BYTES];
};

/* Where PEs are, as the page says (weft_control_read_hosts) or oshrun knows. Copied; 0, -ENOMEM, or
 * -EPROTO where a PE's host or this one is none of them, not logged. `here` is -1 in a process that
 * starts PEs on other hosts alone, and `network` is how this host speaks to the others: NULL where
 * that is not known. */
struct weft_hosts_given {
    int npes, nhosts, here;
    const int32_t *host_of; /* of every PE */
    const struct weft_host *host;
    const struct weft_network *network;
};
int weft_hosts_set(const struct weft_hosts_given *given);

/* The same of a job of one host. */
void weft_hosts_set_one(int npes);

int weft_boot_nhosts(void);
int weft_boot_host(int pe); /* -1: there is no such PE in a job of several hosts */
bool weft_boot_is_here(int pe);
int weft_boot_npes_here(void);
const char *weft_boot_host_name(int host); /* "": it is not known */

/* The network by which this host speaks to the others. NULL: there is one host, or it is not known.
 */
const struct weft_network *weft_boot_network(void);

/* " on b", where the job has several hosts; "" where it has one. Of a PE, and for lines. */
struct weft_on {
    char text[WEFT_HOST_NAME_BYTES + 8];
};
struct weft_on weft_boot_on(int pe);

/* "PE 2", "PEs 2, 3", "PEs 2, 3, 4, 5 and 12 more": those of a host. */
void weft_boot_pes_text(int host, char *text, size_t bytes);

#endif
