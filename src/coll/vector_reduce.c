/* SPDX-License-Identifier: BSD-3-Clause */
/* Reductions of vectors. Every element is reduced by one loop over the members in team order, so it
 * has the same bits wherever that is done. */
#include "coll/band.h"
#include "coll/elements.h"
#include "coll/split.h"
#include "coll/vector.h"

/* Below this every member reduces the whole vector for itself: reading it all costs less than
 * another synchronisation. */
enum { WHOLE_BYTES_MAX = 8 << 10 };

static weft_matrix vector_dest(const struct weft_vector *vector, size_t first, size_t nelems) {
    char *at = (char *)vector->dest + first * weft_element_bytes(vector->dtype);
    return (weft_matrix){at, 1, nelems, nelems, vector->dtype};
}

/* dest = op over the members' elements [offset, offset + dest->cols) of a band's part. */
static void reduce(const struct weft_meeting *meeting, const struct weft_vector *vector,
                   const struct weft_band *band, int part, size_t offset, const weft_matrix *dest) {
    int npes = meeting->team->npes;
    weft_matrix sources[npes];
    for (int member = 0; member < npes; member++)
        sources[member] = weft_band_of(meeting, vector, band, member, part, offset, dest->cols);
    weft_elements_reduce(dest, sources, npes, vector->op);
}

/* --- All-reduce ------------------------------------------------------------------------------ */

static bool whole(const struct weft_vector *vector) {
    return vector->nelems * weft_element_bytes(vector->dtype) <= WHOLE_BYTES_MAX;
}

/* Where the chunk of a band that `member` reduces begins; chunk npes begins at the end. */
static size_t chunk_first(const struct weft_meeting *meeting, const struct weft_band *band,
                          int member) {
    enum { GRAIN = 64 }; /* elements: members write to different cache lines */
    return weft_split_begin(band->nelems, GRAIN, member, meeting->team->npes);
}

/* Where peers find the chunks that a member has reduced: in its dest, or in the workspace behind
 * the input's band. */
static void offer_output(struct weft_meeting *meeting, const struct weft_vector *vector,
                         const struct weft_band *band) {
    size_t element = weft_element_bytes(vector->dtype), band_bytes = band->nelems * element;
    struct weft_place place = weft_place_of(vector->dest, vector->nelems * element);
    if (place.space == WEFT_SPACE_PRIVATE) {
        place = (struct weft_place){WEFT_SPACE_WORKSPACE, band_bytes};
        weft_meeting_commit(meeting, 2 * band_bytes);
    }
    meeting->mine.output = place;
}

void weft_all_reduce_offer(struct weft_meeting *meeting, const struct weft_vector *vector) {
    if (weft_meeting_refused(meeting))
        return;
    struct weft_band band = weft_band_plan(vector, 1);
    if (!whole(vector))
        offer_output(meeting, vector, &band);
    /* In place, a member that is done would overwrite what a slower one still has to read. */
    bool copy = whole(vector) && vector->dest == vector->source;
    weft_band_offer(meeting, vector, &band, copy);
}

/* A member's reduced chunk of the band, as its offer says. */
static weft_matrix reduced_chunk(const struct weft_meeting *meeting,
                                 const struct weft_vector *vector, const struct weft_band *band,
                                 int member) {
    struct weft_place place = weft_meeting_offer(meeting, member)->output;
    size_t first = chunk_first(meeting, band, member);
    size_t nelems = chunk_first(meeting, band, member + 1) - first;
    char *at = weft_place_at(place, meeting->team, member);
    if (place.space != WEFT_SPACE_WORKSPACE)
        at += band->first * weft_element_bytes(vector->dtype);
    at += first * weft_element_bytes(vector->dtype);
    return (weft_matrix){at, 1, nelems, nelems, vector->dtype};
}

static void all_reduce_band(struct weft_meeting *meeting, const struct weft_vector *vector,
                            const struct weft_band *band) {
    int me = meeting->team->my_pe;
    weft_matrix mine = reduced_chunk(meeting, vector, band, me);
    reduce(meeting, vector, band, 0, chunk_first(meeting, band, me), &mine);
    weft_sync_barrier(meeting->team, meeting->name);
    for (int distance = 0; distance < meeting->team->npes; distance++) {
        int member = weft_meeting_member(meeting, distance);
        weft_matrix chunk = reduced_chunk(meeting, vector, band, member);
        size_t first = band->first + chunk_first(meeting, band, member);
        weft_matrix dest = vector_dest(vector, first, chunk.cols);
        weft_elements_copy(&dest, &chunk);
    }
}

/* Staging the next band needs no barrier before it, because inputs have been read by the barrier
 * inside a band; the one after it also says that the last band's results have been read. */
void weft_all_reduce_move(struct weft_meeting *meeting, const struct weft_vector *vector) {
    if (meeting->team->npes == 1) {
        weft_vector_copy(vector);
        return;
    }
    struct weft_band band = weft_band_plan(vector, 1);
    if (whole(vector)) {
        weft_matrix dest = vector_dest(vector, 0, vector->nelems);
        reduce(meeting, vector, &band, 0, 0, &dest);
    } else {
        all_reduce_band(meeting, vector, &band);
        while (weft_band_next(&band, vector)) {
            weft_band_stage(meeting, vector, &band);
            weft_sync_barrier(meeting->team, meeting->name);
            all_reduce_band(meeting, vector, &band);
        }
    }
    if (!weft_band_inside(vector, 1))
        weft_sync_barrier(meeting->team, meeting->name);
}

/* --- Reduce-scatter -------------------------------------------------------------------------- */

void weft_reduce_scatter_offer(struct weft_meeting *meeting, const struct weft_vector *vector) {
    if (weft_meeting_refused(meeting))
        return;
    struct weft_band band = weft_band_plan(vector, meeting->team->npes);
    weft_band_offer(meeting, vector, &band, false);
}

static void reduce_scatter_band(struct weft_meeting *meeting, const struct weft_vector *vector,
                                const struct weft_band *band) {
    weft_matrix dest = vector_dest(vector, band->first, band->nelems);
    reduce(meeting, vector, band, meeting->team->my_pe, 0, &dest);
    if (!weft_band_inside(vector, band->parts))
        weft_sync_barrier(meeting->team, meeting->name);
}

void weft_reduce_scatter_move(struct weft_meeting *meeting, const struct weft_vector *vector) {
    if (meeting->team->npes == 1) {
        weft_vector_copy(vector);
        return;
    }
    struct weft_band band = weft_band_plan(vector, meeting->team->npes);
    reduce_scatter_band(meeting, vector, &band);
    while (weft_band_next(&band, vector)) {
        weft_band_stage(meeting, vector, &band);
        weft_sync_barrier(meeting->team, meeting->name);
        reduce_scatter_band(meeting, vector, &band);
    }
}
