/* SPDX-License-Identifier: BSD-3-Clause */
/* The two rings of letters between a PE and its carrier (core/relay.h), as one side has them.
 * Either is woken by an eventfd, which the other rings if the ring says that it sleeps or waits for
 * room.
 */
#ifndef WEFT_CORE_RELAY_RINGS_H
#define WEFT_CORE_RELAY_RINGS_H

#include "transport/letter_ring.h"

/* A PE's rings to its carrier and from it, and an eventfd by which its process is woken. */
enum { WEFT_RELAY_UP, WEFT_RELAY_DOWN, WEFT_RELAY_BELL, WEFT_RELAY_FDS };

struct weft_relay_rings {
    struct weft_letter_ring in, out;
    int bell; /* of the other side */
};

/* Makes a PE's descriptors, the caller's to close, for letters of so many bytes at most. 0 or
 * -errno, logged. */
int weft_relay_rings_make(size_t letter_bytes, int *fds);

/* Maps a PE's rings, on its own side or its carrier's, and copies the other side's bell. 0 or
 * -errno; then what there is can be detached. */
int weft_relay_rings_attach(struct weft_relay_rings *rings, const int *fds, int bell, bool carries);
void weft_relay_rings_detach(struct weft_relay_rings *rings);

/* 0, or -EAGAIN: then the other side rings once there is room. */
int weft_relay_rings_write(struct weft_relay_rings *rings, const struct iovec *record, int nparts);

/* Gives back what has been taken of `in`. */
void weft_relay_rings_give_back(struct weft_relay_rings *rings);

/* A descriptor of one's own for a bell, or -errno. */
int weft_relay_bell_copy(int bell);

/* Has it sound no more. */
void weft_relay_bell_hush(int bell);

#endif
