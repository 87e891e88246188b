/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the matrices of far members come in: two rooms, so that one of them is read while the next
 * one comes. They lie in the workspace behind what is taken of it, or in private memory where that
 * is full. */
#ifndef WEFT_OPS_LANDING_H
#define WEFT_OPS_LANDING_H

#include <stddef.h>
#include "coll/shown.h"

struct weft_landing {
    char *room[2];
    void *allocated;
};

/* Rooms of so many bytes. 0, also for none, or -ENOMEM with text. */
int weft_landing_open(struct weft_landing *landing, struct weft_team *team, size_t taken,
                      size_t room_bytes);
void weft_landing_close(struct weft_landing *landing);

/* Where the matrix is read: itself if it is mapped, else a dense copy in one of the rooms, which
 * may be under way on return, until weft_shown_complete. */
weft_matrix weft_landing_bring(const struct weft_landing *landing, int room,
                               const struct weft_shown *shown, const struct weft_team *team);

#endif
