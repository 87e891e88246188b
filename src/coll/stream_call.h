/* SPDX-License-Identifier: BSD-3-Clause */
/* A team's call on a stream, and its arrays on all members. */
#ifndef WEFT_COLL_STREAM_CALL_H
#define WEFT_COLL_STREAM_CALL_H

#include "device/stream.h"
#include "coll/plan.h"

/* Between weft_on_stream_begin and _end. */
struct weft_on_stream {
    const struct weft_team *team;
    weft_cu_stream stream;
    struct weft_gpu_scope scope;
};

/* Returns whether the members' data passes through the host, the same on all members: some are far,
 * or some GPU of the job cannot access another one's memory. */
static inline bool weft_on_stream_is_apart(const struct weft_on_stream *on) {
    return on->team->far || (on->team->npes > 1 && weft_device.staged);
}

/* An array on all members as this GPU accesses it, in the order of their places
 * (weft_team_place). */
struct weft_stream_arrays {
    struct weft_array all;
    bool staged;  /* in GPU memory that some GPU of the job cannot access: equal on all members */
    bool reached; /* kernels of this PE can access all of them */
};

static inline char *weft_stream_array_of(const struct weft_on_stream *on,
                                         const struct weft_array *all, int member) {
    return weft_array_at(all, weft_team_place(on->team, member));
}

/* Returns a * b, or SIZE_MAX if the product overflows: no object is that large. */
static inline size_t weft_saturated(size_t a, size_t b) {
    size_t product;
    return __builtin_mul_overflow(a, b, &product) ? SIZE_MAX : product;
}

/* A reduction. If it scatters, each member gets its own block. */
struct weft_stream_folding {
    struct weft_reduction reduction;
    size_t nelems; /* of dest */
    bool scatter;
    bool any; /* dest and source are any memory of this PE's GPU: weft_on_stream_folds_any */
};

#endif
