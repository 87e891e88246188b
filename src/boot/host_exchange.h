/* SPDX-License-Identifier: BSD-3-Clause */
/* Exchanges over several hosts, in the process that gathers them: the front, or PE 0's agent. Each
 * host sends the contributions of its members together (boot/hub.h). */
#ifndef WEFT_BOOT_HOST_EXCHANGE_H
#define WEFT_BOOT_HOST_EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>

struct weft_control;
struct weft_host_exchange;

/* Sends the payload of a SHARED frame to host `host`, or to all hosts if it is WEFT_TREE_ALL. */
typedef void weft_host_exchange_share(void *owner, int host, const void *payload, size_t bytes);

struct weft_host_exchanges {
    int npes, nhosts; /* the hosts of PEs are in boot/hosts.h */
    weft_host_exchange_share *share;
    void *owner;
    struct weft_host_exchange *open;
    int nopen;
};

/* Takes the payload of a GAVE frame from a host. When all hosts with members have contributed,
 * sends the result. Returns 0, -EPROTO if the payload is invalid, or -ENOMEM. */
int weft_host_exchanges_give(struct weft_host_exchanges *exchanges, int host, const void *payload,
                             size_t bytes);

/* Returns whether an exchange waits for this host, to which other hosts have contributed. */
bool weft_host_exchanges_await(const struct weft_host_exchanges *exchanges, int host);

/* Removes exchanges of which a member has finalized according to the page; hosts end these
 * themselves (weft_hub_judge). Call it after each GAVE and PE_STATUS frame. */
void weft_host_exchanges_judge(struct weft_host_exchanges *exchanges,
                               const struct weft_control *control);

void weft_host_exchanges_close(struct weft_host_exchanges *exchanges);

#endif
