/* SPDX-License-Identifier: BSD-3-Clause */
/* All-gather of vectors: everyone copies from everyone, beginning with the next member, so that no
 * member's memory is read by all at once. */
#include <string.h>
#include "coll/band.h"
#include "coll/elements.h"
#include "coll/vector.h"

void weft_vector_copy(const struct weft_vector *vector) {
    size_t bytes = vector->nelems * weft_element_bytes(vector->dtype);
    if (bytes > 0 && vector->dest != vector->source)
        memcpy(vector->dest, vector->source, bytes);
}

void weft_all_gather_offer(struct weft_meeting *meeting, const struct weft_vector *vector) {
    if (weft_meeting_refused(meeting))
        return;
    struct weft_band band = weft_band_plan(vector, 1);
    weft_band_offer(meeting, vector, &band, false);
}

/* The own part comes from the source itself: it may be there already. */
static weft_matrix gather_source(struct weft_meeting *meeting, const struct weft_vector *vector,
                                 const struct weft_band *band, int member) {
    if (member != meeting->team->my_pe)
        return weft_band_of(meeting, vector, band, member, 0, 0, band->nelems);
    size_t before = band->first * weft_element_bytes(vector->dtype);
    return (weft_matrix){(char *)vector->source + before, 1, band->nelems, band->nelems,
                         vector->dtype};
}

static void all_gather_band(struct weft_meeting *meeting, const struct weft_vector *vector,
                            const struct weft_band *band) {
    int npes = meeting->team->npes;
    for (int distance = 1; distance <= npes; distance++) {
        int member = weft_meeting_member(meeting, distance);
        size_t first = (size_t)member * vector->nelems + band->first;
        char *at = (char *)vector->dest + first * weft_element_bytes(vector->dtype);
        weft_matrix dest = {at, 1, band->nelems, band->nelems, vector->dtype};
        weft_matrix source = gather_source(meeting, vector, band, member);
        weft_elements_copy(&dest, &source);
    }
    if (!weft_band_inside(vector, 1))
        weft_sync_barrier(meeting->team, meeting->name);
}

void weft_all_gather_move(struct weft_meeting *meeting, const struct weft_vector *vector) {
    if (meeting->team->npes == 1) {
        weft_vector_copy(vector);
        return;
    }
    struct weft_band band = weft_band_plan(vector, 1);
    all_gather_band(meeting, vector, &band);
    while (weft_band_next(&band, vector)) {
        weft_band_stage(meeting, vector, &band);
        weft_sync_barrier(meeting->team, meeting->name);
        all_gather_band(meeting, vector, &band);
    }
}
