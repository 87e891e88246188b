/* SPDX-License-Identifier: BSD-3-Clause */
/* weft_all_to_allv: arguments and agreement; coll/alltoallv.h moves the data. */
#include <errno.h>
#include <weft.h>
#include "coll/alltoallv.h"
#include "ops/check.h"

/* One side of the call. */
struct side {
    const char *name;
    const void *data;
    const size_t *nelems, *offsets;
};

/* Returns in *bytes the extent of a side, from its first element to the end of its last part. */
static int measure_side(const struct weft_alltoallv *p, const struct side *side, size_t entries,
                        size_t *bytes) {
    size_t end = 0, last = 0;
    size_t most = (size_t)PTRDIFF_MAX / weft_element_bytes(p->dtype);
    for (size_t i = 0; i < entries; i++) {
        size_t nelems = side->nelems[i], begin = side->offsets ? side->offsets[i] : end;
        if (nelems > 0 && (nelems > most || begin > most - nelems))
            return weft_fail_bare(-EINVAL,
                                  "%s_nelems[%zu] is %zu from element %zu on, more than memory has",
                                  side->name, i, nelems, begin);
        end = nelems > 0 ? begin + nelems : end;
        last = end > last ? end : last;
    }
    *bytes = last * weft_element_bytes(p->dtype);
    return 0;
}

static int check_side(const struct weft_alltoallv *p, const struct side *side, size_t entries,
                      size_t *bytes) {
    if (entries > 0 && !side->nelems)
        return weft_fail_bare(-EINVAL, "%s_nelems is NULL", side->name);
    int error = measure_side(p, side, entries, bytes);
    return error ? error
                 : weft_check_pointer(side->name, side->data, *bytes,
                                      ", which this call does not take");
}

static int check_exchange(const struct weft_meeting *meeting, struct weft_alltoallv *p) {
    struct side dest = {"dest", p->dest, p->dest_nelems, p->dest_offsets};
    struct side source = {"source", p->source, p->source_nelems, p->source_offsets};
    size_t dest_bytes, entries = (size_t)meeting->team->npes * p->nparts;
    if (p->nparts > weft_alltoallv_parts_max(meeting))
        return weft_fail_bare(-ENOMEM, "nparts is %zu, but a workspace has room for %zu", p->nparts,
                              weft_alltoallv_parts_max(meeting));
    int error = weft_check_type(p->dtype, NULL);
    error = error ? error : check_side(p, &dest, entries, &dest_bytes);
    return error ? error : check_side(p, &source, entries, &p->source_bytes);
}

int weft_all_to_allv(shmem_team_t team, void *dest, const size_t *dest_nelems,
                     const size_t *dest_offsets, const void *source, const size_t *source_nelems,
                     const size_t *source_offsets, size_t nparts, weft_dtype dtype,
                     weft_stream stream) {
    WEFT_IN_CALL(__func__);
    struct weft_meeting meeting;
    int error = weft_meeting_open(&meeting, team, WEFT_CALL_ALL_TO_ALLV, stream);
    struct weft_alltoallv exchange = {
        dest, source, dest_nelems, dest_offsets, source_nelems, source_offsets, nparts, dtype, 0};
    error = error ? error : check_exchange(&meeting, &exchange);
    error = error ? error : weft_alltoallv_offer(&meeting, &exchange);
    weft_meeting_post(&meeting, error);
    error = weft_meeting_agree(&meeting);
    if (!error)
        error = weft_alltoallv_compare(&meeting, &exchange);
    if (!error)
        weft_alltoallv_move(&meeting, &exchange);
    return weft_meeting_close(&meeting, error);
}
