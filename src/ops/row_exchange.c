/* SPDX-License-Identifier: BSD-3-Clause */
/* weft_all_to_allv_on_device: arguments and agreement. For threads the members read each other's
 * numbers (coll/row_lists.h), then weft_all_to_allv moves the rows; on a stream see
 * fused/row_exchange.c. */
#include <errno.h>
#include <stdlib.h>
#include "coll/meeting.h"
#include "coll/on_stream.h"
#include "coll/row_lists.h"
#include "fused/fused.h"
#include "ops/check.h"

enum { NPARTS, COLS, DTYPE, DEST_BY_PART, ALIGN }; /* indices of the facts of an offer */

/* --- Arguments -------------------------------------------------------------------------------- */

static int check_shape(const weft_row_exchange *shape) {
    enum { NPARTS_MAX = 1 << 20 };
    if (!shape)
        return weft_fail_bare(-EINVAL, "exchange is NULL");
    int error = weft_check_type(shape->dtype, NULL);
    if (error)
        return error;
    if (shape->nparts < 1 || shape->nparts > NPARTS_MAX)
        return weft_fail_bare(-EINVAL, "exchange->nparts is %zu, not 1 to %d", shape->nparts,
                              NPARTS_MAX);
    size_t row = weft_saturated(shape->cols, weft_element_bytes(shape->dtype));
    size_t rows = shape->source_rows > shape->dest_rows ? shape->source_rows : shape->dest_rows;
    if (rows > UINT32_MAX || (row > 0 && rows > (size_t)PTRDIFF_MAX / row))
        return weft_fail_bare(-EINVAL, "%zu rows of %zu elements are more than memory has", rows,
                              shape->cols);
    if (shape->align > UINT32_MAX)
        return weft_fail_bare(-EINVAL, "exchange->align is %zu: pass less than 2^32", shape->align);
    return 0;
}

/* One of the arrays of numbers; those of results are written, the others read. */
struct number_array {
    const char *name;
    const int64_t *at;
    bool optional;
};
enum { ARRAYS = 4 };
struct number_arrays {
    struct number_array of[ARRAYS];
};

static struct number_arrays numbers_of(const struct weft_fused_rows_exchange *x) {
    return (struct number_arrays){{{"source_splits", x->source_splits, false},
                                   {"source_offsets", x->source_offsets, true},
                                   {"dest_splits", x->dest_splits, false},
                                   {"dest_offsets", x->dest_offsets, false}}};
}

static size_t bytes_of(const weft_row_exchange *shape, size_t rows) {
    return rows * shape->cols * weft_element_bytes(shape->dtype);
}

/* --- Of the host ------------------------------------------------------------------------------ */

static int check_here(const struct weft_meeting *meeting,
                      const struct weft_fused_rows_exchange *x) {
    struct number_arrays numbers = numbers_of(x);
    int error = check_shape(x->shape);
    if (error)
        return error;
    size_t bytes = (size_t)meeting->team->npes * x->shape->nparts * sizeof(int64_t);
    for (int i = 0; i < ARRAYS && error == 0; i++)
        if (numbers.of[i].at || !numbers.of[i].optional)
            error =
                weft_check_pointer(numbers.of[i].name, numbers.of[i].at, bytes, ": pass a stream");
    error = error ? error
                  : weft_check_pointer("dest", x->dest, bytes_of(x->shape, x->shape->dest_rows),
                                       ": pass a stream");
    return error ? error
                 : weft_check_pointer("source", x->source,
                                      bytes_of(x->shape, x->shape->source_rows), ": pass a stream");
}

static void show_facts(struct weft_meeting *meeting, const weft_row_exchange *shape) {
    uint64_t *facts = meeting->mine.facts;
    facts[NPARTS] = shape->nparts;
    facts[COLS] = shape->cols;
    facts[DTYPE] = (uint64_t)shape->dtype;
    facts[DEST_BY_PART] = shape->dest_by_part;
    facts[ALIGN] = shape->align;
}

/* The members read and check each other's lists. Returns the same on all members. */
static int meet(struct weft_meeting *meeting, struct weft_row_lists *lists,
                const struct weft_fused_rows_exchange *x, int error) {
    error = error ? error : check_here(meeting, x);
    error = error ? error : weft_row_lists_open(lists, meeting->team, x->shape);
    error = error ? error : weft_row_lists_show(lists, x->source_splits, x->source_offsets);
    if (!error)
        show_facts(meeting, x->shape);
    weft_meeting_post(meeting, error);
    error = weft_meeting_agree(meeting);
    if (error)
        return error;
    weft_row_lists_read(lists);
    weft_sync_barrier(meeting->team); /* before another call uses the workspaces */
    return weft_row_lists_check(lists);
}

/* The four arrays of weft_all_to_allv, in elements. */
struct elements {
    size_t *sent, *froms, *received, *places;
};

static void set_elements(const struct elements *e, struct weft_row_lists *lists) {
    size_t nparts = lists->shape->nparts, cols = lists->shape->cols;
    int me = lists->team->my_pe;
    for (size_t i = 0; i < lists->entries; i++) {
        int member = (int)(i / nparts);
        e->sent[i] = weft_row_lists_split(lists, me, member, i % nparts) * cols;
        e->froms[i] = lists->froms[i] * cols;
        e->received[i] = weft_row_lists_split(lists, member, me, i % nparts) * cols;
        e->places[i] = lists->places[i] * cols;
    }
}

/* Every member calls weft_all_to_allv, also one without memory, so that all get its error. */
static int move_rows(shmem_team_t team, struct weft_row_lists *lists,
                     const struct weft_fused_rows_exchange *x) {
    enum { FOUR = 4 };
    size_t n = lists->entries;
    size_t *room = calloc(n, FOUR * sizeof *room);
    struct elements e = {NULL, NULL, NULL, NULL};
    if (room) {
        weft_row_lists_receive(lists, x->dest_splits, x->dest_offsets);
        e = (struct elements){room, room + n, room + 2 * n, room + 3 * n};
        set_elements(&e, lists);
    }
    int error = weft_all_to_allv(team, x->dest, e.received, e.places, x->source, e.sent, e.froms,
                                 lists->shape->nparts, lists->shape->dtype, WEFT_STREAM_HOST);
    free(room);
    return error;
}

static int exchange_here(shmem_team_t team, const struct weft_fused_rows_exchange *x) {
    struct weft_meeting meeting;
    struct weft_row_lists lists = {0};
    int error =
        weft_meeting_open(&meeting, team, WEFT_CALL_ALL_TO_ALLV_ON_DEVICE, WEFT_STREAM_HOST);
    error = weft_meeting_close(&meeting, meet(&meeting, &lists, x, error));
    error = error ? error : move_rows(team, &lists, x);
    weft_row_lists_close(&lists);
    return error;
}

/* --- On a stream ------------------------------------------------------------------------------ */

static int check_on_stream(const struct weft_on_stream *on,
                           const struct weft_fused_rows_exchange *x) {
    struct number_arrays numbers = numbers_of(x);
    size_t bytes = (size_t)on->team->npes * x->shape->nparts * sizeof(int64_t);
    int error = 0;
    for (int i = 0; i < ARRAYS && error == 0; i++)
        if (numbers.of[i].at || !numbers.of[i].optional)
            error = weft_check_reached(numbers.of[i].name, numbers.of[i].at, bytes);
    error =
        error ? error
              : weft_check_reached("source", x->source, bytes_of(x->shape, x->shape->source_rows));
    return error ? error
                 : weft_check_reached("dest", x->dest, bytes_of(x->shape, x->shape->dest_rows));
}

static int exchange_on_stream(shmem_team_t team, const struct weft_fused_rows_exchange *x,
                              weft_stream stream) {
    struct weft_on_stream on = {.stream = (weft_cu_stream)stream};
    int error = check_shape(x->shape);
    if (error)
        return weft_check_fail_named(error);
    error = weft_on_stream_enter(&on, team);
    if (error)
        return error;
    error = check_on_stream(&on, x);
    return weft_on_stream_end(&on, error ? weft_check_fail_named(error)
                                         : weft_fused_exchange_rows(&on, x));
}

int weft_all_to_allv_on_device(shmem_team_t team, const weft_row_exchange *exchange, void *dest,
                               int64_t *dest_splits, int64_t *dest_offsets, const void *source,
                               const int64_t *source_splits, const int64_t *source_offsets,
                               weft_stream stream) {
    WEFT_IN_CALL(__func__);
    struct weft_fused_rows_exchange x = {.shape = exchange,
                                         .dest = dest,
                                         .source = source,
                                         .dest_splits = dest_splits,
                                         .dest_offsets = dest_offsets,
                                         .source_splits = source_splits,
                                         .source_offsets = source_offsets};
    return stream == WEFT_STREAM_HOST ? exchange_here(team, &x)
                                      : exchange_on_stream(team, &x, stream);
}
