/* SPDX-License-Identifier: BSD-3-Clause */
/* Exchanges over hosts, in the one process where they come together: the front of oshrun, or PE 0's
 * agent. Each host gives the contributions of its members at once (boot/hub.h). */
#ifndef WEFT_BOOT_HOST_EXCHANGE_H
#define WEFT_BOOT_HOST_EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>

struct weft_control;
struct weft_host_exchange;

/* Sends the payload of a SHARED to a host, or to WEFT_TREE_ALL. */
typedef void weft_host_exchange_share(void *owner, int host, const void *payload, size_t bytes);

struct weft_host_exchanges {
    int npes, nhosts; /* whose places boot/hosts.h knows */
    weft_host_exchange_share *share;
    void *owner;
    struct weft_host_exchange *open;
    int nopen;
};

/* Takes what a host gives, the payload of a GAVE; once all hosts with members have given, shares
 * it. 0; -EPROTO: it makes no sense; -ENOMEM. */
int weft_host_exchanges_give(struct weft_host_exchanges *exchanges, int host, const void *payload,
                             size_t bytes);

/* True if others have given to an exchange, and this host has not. */
bool weft_host_exchanges_await(const struct weft_host_exchanges *exchanges, int host);

/* Forgets exchanges of which a member has finalized, as the page says: hosts end these themselves
 * (weft_hub_judge). Call it after each GAVE and after news of PEs. */
void weft_host_exchanges_judge(struct weft_host_exchanges *exchanges,
                               const struct weft_control *control);

void weft_host_exchanges_close(struct weft_host_exchanges *exchanges);

#endif
