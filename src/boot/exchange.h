/* SPDX-License-Identifier: BSD-3-Clause */
/* An exchange as one PE sees it: contributions of the members arrive in order, some in each
 * message, on a socket to the process that gathers them. */
#ifndef WEFT_BOOT_EXCHANGE_H
#define WEFT_BOOT_EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weft_exchange {
    const void *mine; /* this PE's contribution */
    size_t bytes;
    void *all;      /* receives the contributions of all members, in order */
    const int *fds; /* this PE's descriptors */
    int nfds;
    int *all_fds;

    /* Set by the exchange. */
    int members, arrived;
    bool over_hosts; /* members on other hosts contribute no descriptors */
    int gone;        /* if the error is -ECONNABORTED: the PE that has finalized */
};

/* Returns the place of member `first`'s contribution. */
static inline void *weft_exchange_at(const struct weft_exchange *exchange, size_t first) {
    return (char *)exchange->all + first * exchange->bytes;
}

/* Every PE contributes `bytes` (<= WEFT_BOOT_BLOB_MAX) and nfds (<= WEFT_BOOT_FDS_MAX) descriptors;
 * both numbers are equal on all PEs. PE i's contribution arrives at all[i * bytes] and all_fds[i *
 * nfds]. All received descriptors are new and close-on-exec, including a PE's own; those of PEs on
 * other hosts are -1. Collective over the job. Returns 0, or -errno after logging the reason. Does
 * not return if the job is aborted. */
int weft_boot_exchange(struct weft_exchange *exchange);

/* An exchange among some PEs: contribution i is that of pes[i]. All members pass the same list,
 * which includes themselves, and the same tag. Exchanges may overlap, also in different threads, if
 * they differ in list or tag. Other PEs, including PE 0, take no part. Collective over the members;
 * exchanges that wait for each other's members in a cycle deadlock. Returns 0, or the same -errno
 * on all members, with text: -ECONNABORTED if a member has finalized; -ENOTSUP if there are
 * descriptors and members on several hosts; -EPROTO if contributions differ in size; -EBADF if the
 * program has closed descriptors of the process that serves the exchange. These are returned on
 * this PE only: -EMFILE, no room for the descriptors, so after an exchange of descriptors members
 * have to agree on its result; -EINVAL, the list names a PE twice or not this PE, or the
 * contribution is too large; -ENOTCONN, this process is not attached. After the last two this PE
 * takes no part. Any other failure ends the job. */
struct weft_boot_subset {
    const int *pes;
    int count;
    uint64_t tag;
    void (*over)(
        void); /* called after the job has ended, must not return; NULL: the process ends */
};
int weft_boot_exchange_among(const struct weft_boot_subset *subset, struct weft_exchange *exchange);

/* Returns 0 on all members if `own` is 0 on all of them, otherwise the error of the first member
 * whose `own` is not 0, with text on all members; a member with an error of its own has set its
 * text already. */
int weft_boot_agree_among(const struct weft_boot_subset *subset, int own);

/* Begins an exchange among that many members: checks the sizes of contributions and raises the
 * limit on descriptors. Returns 0 or -errno; on failure there are no descriptors to close. */
int weft_exchange_begin(struct weft_exchange *exchange, int members);

/* Receives the next contributions. Returns 0; -EAGAIN if there are none yet; -EPIPE if the other
 * side has closed; or the error that the other side reports. */
int weft_exchange_take(struct weft_exchange *exchange, int socket);

/* Closes the descriptors that have arrived. */
void weft_exchange_drop(struct weft_exchange *exchange);

#endif
