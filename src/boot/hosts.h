/* SPDX-License-Identifier: BSD-3-Clause */
/* The hosts of a job and the host of each PE. A PE copies this from the control page when it
 * attaches, because any PE can overwrite the page; oshrun fills the page from it. A job on one host
 * has only host 0, without a name. */
#ifndef WEFT_BOOT_HOSTS_H
#define WEFT_BOOT_HOSTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "boot/address.h"

#define WEFT_HOST_NAME_BYTES 64 /* with the terminating zero */

struct weft_host {
    char name[WEFT_HOST_NAME_BYTES];
};

/* Sets the hosts, from the page (weft_control_read_hosts) or in oshrun; the data is copied. `here`
 * is -1 in a process that only starts PEs on other hosts. `network` is the network on which this
 * host reaches the others, or NULL if unknown. Returns 0, -ENOMEM, or -EPROTO if a host number is
 * invalid, without logging. */
struct weft_hosts_given {
    int npes, nhosts, here;
    const int32_t *host_of; /* host of every PE */
    const struct weft_host *host;
    const struct weft_network *network;
};
int weft_hosts_set(const struct weft_hosts_given *given);

/* Does the same for a job on one host. */
void weft_hosts_set_one(int npes);

int weft_boot_nhosts(void);
int weft_boot_host(int pe); /* -1: in a job on several hosts there is no such PE */
bool weft_boot_is_here(int pe);
int weft_boot_npes_here(void);
const char *weft_boot_host_name(int host); /* "": unknown */

/* Returns the network on which this host reaches the others, or NULL if there is one host or it is
 * unknown. */
const struct weft_network *weft_boot_network(void);

/* Returns " on b" for a PE, for use in log lines, or "" in a job on one host. */
struct weft_on {
    char text[WEFT_HOST_NAME_BYTES + 8];
};
struct weft_on weft_boot_on(int pe);

/* Writes the PEs of a host: "PE 2", "PEs 2, 3", "PEs 2, 3, 4, 5 and 12 more". */
void weft_boot_pes_text(int host, char *text, size_t bytes);

#endif
