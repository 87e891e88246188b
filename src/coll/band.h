/* SPDX-License-Identifier: BSD-3-Clause */
/* Staging: an input that is not symmetric is shown to peers in the workspace, one band after
 * another. The width of a band depends only on values that are equal on all members, so all count
 * the same bands, whatever the sizes of their inputs. */
#ifndef WEFT_COLL_BAND_H
#define WEFT_COLL_BAND_H

#include "coll/meeting.h"

/* Returns the units of unit_bytes in a band: as many as fit into `room`, and few enough that the
 * other members read them from a cache. */
static inline size_t weft_band_width(size_t room, size_t unit_bytes) {
    enum { BAND_BYTES = 4 << 20 };
    return (room < BAND_BYTES ? room : BAND_BYTES) / unit_bytes;
}

/* Returns the number of bands for `total` units; 1 for no units. */
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

/* A call's bands. The first is shown before the post; there is no barrier after the last. */
struct weft_bands {
    const struct weft_meeting *meeting;
    size_t count;
    bool all_read; /* `take` returns only after all members have read their inputs */
    void (*stage)(const void *call, size_t band); /* shows this member's input */
    int (*take)(const void *call, size_t band);   /* reads the others' inputs; 0 or -errno */
};

/* Stages and takes the bands one after another, with all members, even after a failure. Returns the
 * first error. */
int weft_bands_run(const struct weft_bands *bands, const void *call);

#endif
