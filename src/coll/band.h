/* SPDX-License-Identifier: BSD-3-Clause */
/* Inputs of vector collectives, as peers see them.
 *
 * An input consists of `parts` parts of nelems elements each. It is worked on in bands: the
 * elements [first, first + nelems) of every part. A private input is copied to the workspace band
 * by band, the parts' pieces one after another; the bands are the same on every member, whatever
 * its input. */
#ifndef WEFT_COLL_BAND_H
#define WEFT_COLL_BAND_H

#include "coll/elements.h"
#include "coll/vector.h"

struct weft_band {
    size_t first, nelems; /* this band, in elements of a part */
    size_t nelems_max;    /* of any band */
    int parts;
};

/* How the vector is cut: the same for all members. */
struct weft_band weft_band_plan(const struct weft_vector *vector, int parts);

/* Whether there is a next band; moves on to it. */
bool weft_band_next(struct weft_band *band, const struct weft_vector *vector);

/* Makes the input readable: inside the offer if all of it fits there, else at its own place unless
 * `copy`, else by a copy of the first band. Refuses where there is no workspace. */
void weft_band_offer(struct weft_meeting *meeting, const struct weft_vector *vector,
                     const struct weft_band *band, bool copy);

/* Whether inputs travelled inside the offers. The same on all members. */
bool weft_band_inside(const struct weft_vector *vector, int parts);

/* Copies the band to the workspace, if that is where the peers look for this member's input. */
void weft_band_stage(const struct weft_meeting *meeting, const struct weft_vector *vector,
                     const struct weft_band *band);

/* Elements [offset, offset + nelems) of this band of a part of a member's input, as one row. */
weft_matrix weft_band_of(const struct weft_meeting *meeting, const struct weft_vector *vector,
                         const struct weft_band *band, int member, int part, size_t offset,
                         size_t nelems);

#endif
