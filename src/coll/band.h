/* SPDX-License-Identifier: BSD-3-Clause */
/* Inputs that peers read a band at a time, the one way of staging: what is not symmetric is shown
 * in the workspace, a band of it after the other. How wide a band is depends on what all members
 * know alike, so that all count the same bands, whatever they have to show. */
#ifndef WEFT_COLL_BAND_H
#define WEFT_COLL_BAND_H

#include "coll/meeting.h"

/* Units of unit_bytes in a band: as many as fit the room, and few enough that what one member
 * writes the others read from a cache. */
static inline size_t weft_band_width(size_t room, size_t unit_bytes) {
    enum { BAND_BYTES = 4 << 20 };
    return (room < BAND_BYTES ? room : BAND_BYTES) / unit_bytes;
}

/* How many bands show `total` units: one, if there are none. */
static inline size_t weft_band_count(size_t total, size_t width) {
    return total <= width ? 1 : (total - 1) / width + 1;
}

/* The units of a band. */
struct weft_band {
    size_t first, nelems;
};
static inline struct weft_band weft_band_of(size_t total, size_t width, size_t band) {
    size_t first = band == 0 ? 0 : band <= total / width ? band * width : total;
    return (struct weft_band){first, total - first < width ? total - first : width};
}

/* A call's bands. The first one has been shown before the post; there is no barrier behind the
 * last. */
struct weft_bands {
    const struct weft_meeting *meeting;
    size_t count;
    bool all_read; /* a member that comes out of `take` knows that all have read their inputs */
    void (*stage)(const void *call, size_t band); /* shows this member's input */
    int (*take)(const void *call, size_t band);   /* reads the others'; 0 or -errno */
};

/* Stages and takes one band after another, with all members, also behind a failure: the first. */
int weft_bands_run(const struct weft_bands *bands, const void *call);

#endif
