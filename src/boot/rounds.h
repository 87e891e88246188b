/* SPDX-License-Identifier: BSD-3-Clause */
/* An exchange of all PEs over hosts, as the one process has it in which it comes together: each
 * host gives the contributions of its PEs at once. */
#ifndef WEFT_BOOT_ROUNDS_H
#define WEFT_BOOT_ROUNDS_H

#include <stddef.h>
#include "boot/host_link.h"
#include "boot/tree.h"

struct weft_rounds {
    int npes, nhosts;
    struct weft_tree_round round;     /* that is under way, or comes next */
    unsigned char *shares;            /* its head, and what has been given; NULL: nothing has */
    int given;                        /* by how many hosts, */
    bool gave[WEFT_MIDDLE_HOSTS_MAX]; /* and by which */
};

/* What a host gives: the payload of a GAVE. 1: all have given, and the payload of a SHARED lies at
 * rounds->shares, of *bytes; 0: not yet; -EPROTO: it makes no sense; -ENOMEM. */
int weft_rounds_give(struct weft_rounds *rounds, int host, const void *payload, size_t bytes,
                     size_t *shared);

/* The shares have been passed on. */
void weft_rounds_next(struct weft_rounds *rounds);

/* True if others have given to a round to which this host has not. */
bool weft_rounds_await(const struct weft_rounds *rounds, int host);

#endif
