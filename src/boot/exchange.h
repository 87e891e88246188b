/* SPDX-License-Identifier: BSD-3-Clause */
/* One exchange as one PE sees it: contributions arrive in the order of the members, some at a time,
 * through a socket to whoever gathers them. */
#ifndef WEFT_BOOT_EXCHANGE_H
#define WEFT_BOOT_EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>

struct weft_exchange {
    const void *mine; /* this PE's contribution: so many bytes, */
    size_t bytes;
    void *all;      /* and where those of all go, in the order of the members */
    const int *fds; /* the same of descriptors */
    int nfds;
    int *all_fds;

    /* Under way: filled in by the exchange itself. */
    int members, arrived;
    bool over_hosts; /* those of PEs on other hosts come without descriptors */
    bool refused;    /* whoever gathers them has told all that it went wrong there */
};

/* Where contributions go from member `first` on. */
static inline void *weft_exchange_at(const struct weft_exchange *exchange, size_t first) {
    return (char *)exchange->all + first * exchange->bytes;
}

/* Every PE gives `bytes` (<= WEFT_BOOT_BLOB_MAX) and nfds (<= WEFT_BOOT_FDS_MAX) descriptors, the
 * same numbers on all PEs; all[i * bytes ...] and all_fds[i * nfds ...] are what PE i gave. Every
 * received descriptor is new and close-on-exec, also the own ones; of a PE on another host there is
 * none, and -1 in its place. Collective over the job. 0 or -errno, logged; does not return when the
 * job is aborted meanwhile. */
int weft_boot_exchange(struct weft_exchange *exchange);

/* Begins one among so many members: checks that contributions of these sizes are allowed, and
 * raises the limit on descriptors. 0 or -errno; then there are none to drop. */
int weft_exchange_begin(struct weft_exchange *exchange, int members);

/* The exchange of one PE, which gets what it gives. 0 or -errno. */
int weft_exchange_alone(struct weft_exchange *exchange);

/* Takes the next contributions. 0 or -errno; -EAGAIN: there are none yet; -EPIPE: the other side is
 * gone; or what it says has gone wrong there. */
int weft_exchange_take(struct weft_exchange *exchange, int socket);

/* Closes the descriptors that have arrived; others are -1 from the beginning on. */
void weft_exchange_drop(struct weft_exchange *exchange);

#endif
