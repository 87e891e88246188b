/* SPDX-License-Identifier: BSD-3-Clause */
/* All-to-all of vectors: everyone copies its part from everyone, beginning with the next member, so
 * that no member's memory is read by all at once. */
#include "coll/band.h"
#include "coll/elements.h"
#include "coll/vector.h"

void weft_all_to_all_offer(struct weft_meeting *meeting, const struct weft_vector *vector) {
    if (weft_meeting_refused(meeting))
        return;
    struct weft_band band = weft_band_plan(vector, meeting->team->npes);
    weft_band_offer(meeting, vector, &band, false);
}

static void all_to_all_band(struct weft_meeting *meeting, const struct weft_vector *vector,
                            const struct weft_band *band) {
    int me = meeting->team->my_pe, npes = meeting->team->npes;
    for (int distance = 1; distance <= npes; distance++) {
        int member = weft_meeting_member(meeting, distance);
        weft_matrix source = weft_band_of(meeting, vector, band, member, me, 0, band->nelems),
                    dest = source;
        size_t first = (size_t)member * vector->nelems + band->first;
        dest.data = (char *)vector->dest + first * weft_element_bytes(vector->dtype);
        weft_elements_copy(&dest, &source);
    }
    if (!weft_band_inside(vector, npes))
        weft_sync_barrier(meeting->team, meeting->name);
}

void weft_all_to_all_move(struct weft_meeting *meeting, const struct weft_vector *vector) {
    if (meeting->team->npes == 1) {
        weft_vector_copy(vector);
        return;
    }
    struct weft_band band = weft_band_plan(vector, meeting->team->npes);
    all_to_all_band(meeting, vector, &band);
    while (weft_band_next(&band, vector)) {
        weft_band_stage(meeting, vector, &band);
        weft_sync_barrier(meeting->team, meeting->name);
        all_to_all_band(meeting, vector, &band);
    }
}
