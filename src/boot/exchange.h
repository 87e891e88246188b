/* SPDX-License-Identifier: BSD-3-Clause */
/* One exchange as one PE sees it: contributions arrive in the order of the members, some at a time,
 * through a socket to whoever gathers them. */
#ifndef WEFT_BOOT_EXCHANGE_H
#define WEFT_BOOT_EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
    int gone;        /* the PE that has finalized, where -ECONNABORTED says so */
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

/* An exchange among some PEs: contribution i is that of pes[i]. All members give the same list,
 * with themselves in it, and the same tag; so many exchanges may be under way at once, in any
 * threads, as differ in list or tag. PEs that are no members take no part in it, PE 0 included.
 * Collective over the members; exchanges that wait for each other's members in a cycle deadlock. 0
 * or the same -errno on all, with text: -ECONNABORTED, a member has finalized; -ENOTSUP, members
 * are on several hosts and descriptors are wanted. But -EMFILE, no room for the descriptors, is
 * this PE's alone, so members agree after an exchange of descriptors. Any other failure ends the
 * job. */
struct weft_boot_subset {
    const int *pes;
    int count;
    uint64_t tag;
    void (*over)(void); /* the job is over: does not return. NULL: at once */
};
int weft_boot_exchange_among(const struct weft_boot_subset *subset, struct weft_exchange *exchange);

/* Says whether all members have come so far: 0, or the error of the first one that has not, with
 * text on all of them; a PE's own error has its text already. */
int weft_boot_agree_among(const struct weft_boot_subset *subset, int own);

/* Begins one among so many members: checks that contributions of these sizes are allowed, and
 * raises the limit on descriptors. 0 or -errno; then there are none to drop. */
int weft_exchange_begin(struct weft_exchange *exchange, int members);

/* Takes the next contributions. 0 or -errno; -EAGAIN: there are none yet; -EPIPE: the other side is
 * gone; or what it says has gone wrong there. */
int weft_exchange_take(struct weft_exchange *exchange, int socket);

/* Closes the descriptors that have arrived; others are -1 from the beginning on. */
void weft_exchange_drop(struct weft_exchange *exchange);

#endif
