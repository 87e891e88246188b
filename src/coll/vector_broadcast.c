/* SPDX-License-Identifier: BSD-3-Clause */
/* Broadcast of a vector: everyone copies from the root. */
#include "coll/band.h"
#include "coll/elements.h"
#include "coll/vector.h"

void weft_broadcast_offer(struct weft_meeting *meeting, const struct weft_vector *vector,
                          int root) {
    if (weft_meeting_refused(meeting) || meeting->team->my_pe != root)
        return;
    struct weft_band band = weft_band_plan(vector, 1);
    weft_band_offer(meeting, vector, &band, false);
}

static void broadcast_band(struct weft_meeting *meeting, const struct weft_vector *vector,
                           const struct weft_band *band, int root) {
    if (meeting->team->my_pe != root) {
        weft_matrix source = weft_band_of(meeting, vector, band, root, 0, 0, band->nelems),
                    dest = source;
        dest.data = (char *)vector->dest + band->first * weft_element_bytes(vector->dtype);
        weft_elements_copy(&dest, &source);
    }
    if (!weft_band_inside(vector, 1))
        weft_sync_barrier(meeting->team, meeting->name);
}

/* The root's own copy is made first: if dest is source there is none. */
void weft_broadcast_move(struct weft_meeting *meeting, const struct weft_vector *vector, int root) {
    if (meeting->team->my_pe == root)
        weft_vector_copy(vector);
    if (meeting->team->npes == 1)
        return;
    struct weft_band band = weft_band_plan(vector, 1);
    broadcast_band(meeting, vector, &band, root);
    while (weft_band_next(&band, vector)) {
        weft_band_stage(meeting, vector, &band);
        weft_sync_barrier(meeting->team, meeting->name);
        broadcast_band(meeting, vector, &band, root);
    }
}
