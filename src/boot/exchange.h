/* SPDX-License-Identifier: BSD-3-Clause */
/* One exchange as one PE sees it: contributions arrive in the order of the members, some at a time,
 * through a socket to whoever gathers them. */
#ifndef WEFT_BOOT_EXCHANGE_H
#define WEFT_BOOT_EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>

struct weft_exchange {
    int members;
    size_t bytes; /* of one contribution */
    int nfds;     /* of one contribution */
    int arrived;
    bool refused; /* whoever gathers them has told all that it went wrong there */
    unsigned char *all;
    int *all_fds;
};

/* Checks that contributions of these sizes are allowed, and raises the limit on descriptors. 0 or
 * -errno. */
int weft_exchange_check(const struct weft_exchange *exchange);

/* The exchange of one PE, which gets what it gives. 0 or -errno. */
int weft_exchange_alone(const struct weft_exchange *exchange, const void *mine, const int *fds);

/* Takes the next contributions. 0 or -errno; -EAGAIN: with MSG_DONTWAIT in `flags`, and nothing
 * there; -EPIPE: the other side is gone; or what it says has gone wrong there. */
int weft_exchange_take(struct weft_exchange *exchange, int socket, int flags);

/* Closes the descriptors that have arrived. */
void weft_exchange_drop(struct weft_exchange *exchange);

#endif
