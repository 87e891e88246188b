/* SPDX-License-Identifier: BSD-3-Clause */
/* A band is at most half a workspace, and small enough that what one member writes into it the
 * others read from a cache. */
#include "coll/band.h"
#include <string.h>

enum { BAND_BYTES = 4 << 20, CACHE_LINE = 64 };

struct weft_band weft_band_plan(const struct weft_vector *vector, int parts) {
    size_t half = weft_team_workspace_capacity() / 2;
    size_t bytes = half < BAND_BYTES ? half : BAND_BYTES;
    size_t nelems = bytes / weft_element_bytes(vector->dtype) / (size_t)parts;
    nelems -= nelems % CACHE_LINE;
    size_t most = nelems > 0 ? nelems : 1;
    size_t now = vector->nelems < most ? vector->nelems : most;
    return (struct weft_band){.nelems = now, .nelems_max = most, .parts = parts};
}

bool weft_band_next(struct weft_band *band, const struct weft_vector *vector) {
    band->first += band->nelems;
    size_t left = vector->nelems - band->first;
    band->nelems = left < band->nelems_max ? left : band->nelems_max;
    return left > 0;
}

bool weft_band_inside(const struct weft_vector *vector, int parts) {
    size_t bytes = weft_element_bytes(vector->dtype) * (size_t)parts;
    return vector->nelems <= WEFT_OFFER_BYTES / bytes;
}

void weft_band_offer(struct weft_meeting *meeting, const struct weft_vector *vector,
                     const struct weft_band *band, bool copy) {
    size_t element = weft_element_bytes(vector->dtype), parts = (size_t)band->parts;
    size_t bytes = vector->nelems * parts * element;
    if (meeting->team->npes == 1)
        return;
    if (weft_band_inside(vector, band->parts)) {
        if (bytes > 0)
            memcpy(meeting->mine.data, vector->source, bytes);
        meeting->data_bytes = bytes;
        return;
    }
    struct weft_place place = weft_place_of(vector->source, bytes);
    if (copy || place.space == WEFT_SPACE_PRIVATE)
        place = (struct weft_place){WEFT_SPACE_WORKSPACE, 0};
    meeting->mine.input = place;
    if (place.space == WEFT_SPACE_WORKSPACE)
        weft_meeting_commit(meeting, band->nelems * parts * element);
    if (!weft_meeting_refused(meeting))
        weft_band_stage(meeting, vector, band);
}

void weft_band_stage(const struct weft_meeting *meeting, const struct weft_vector *vector,
                     const struct weft_band *band) {
    if (meeting->mine.input.space != WEFT_SPACE_WORKSPACE)
        return;
    size_t element = weft_element_bytes(vector->dtype), bytes = band->nelems * element;
    char *to = weft_place_at(meeting->mine.input, meeting->team, meeting->team->my_pe);
    for (int part = 0; part < band->parts; part++) {
        size_t from = (size_t)part * vector->nelems + band->first;
        memcpy(to + (size_t)part * bytes, (const char *)vector->source + from * element, bytes);
    }
}

/* Elements before the one that is asked for, in the memory that the member's offer names. */
static size_t elements_before(const struct weft_vector *vector, const struct weft_band *band,
                              enum weft_space space, int part) {
    if (space == WEFT_SPACE_WORKSPACE)
        return (size_t)part * band->nelems;
    return (size_t)part * vector->nelems + band->first;
}

weft_matrix weft_band_of(const struct weft_meeting *meeting, const struct weft_vector *vector,
                         const struct weft_band *band, int member, int part, size_t offset,
                         size_t nelems) {
    const struct weft_offer *offer = weft_meeting_offer(meeting, member);
    const char *data = (const char *)offer->data;
    if (!weft_band_inside(vector, band->parts))
        data = weft_place_at(offer->input, meeting->team, member);
    size_t before = elements_before(vector, band, offer->input.space, part) + offset;
    const char *at = data + before * weft_element_bytes(vector->dtype);
    return (weft_matrix){(void *)at, 1, nelems, nelems, vector->dtype};
}
