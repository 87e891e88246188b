/* SPDX-License-Identifier: BSD-3-Clause */
/* The collectives of vectors: each is a plan, which members agree on in a meeting (coll/vector.h),
 * or which goes to a stream (coll/on_stream.h).
 *
 * Nothing tells the members of a call on a stream what one of them has passed: the host would have
 * to wait for them. So a wrong argument is this member's error alone there, and it has enqueued
 * nothing then. */
#include <errno.h>
#include "coll/on_stream.h"
#include "coll/vector.h"
#include "ops/check.h"

/* --- In a meeting ---------------------------------------------------------------------------- */

static bool check_root(struct weft_meeting *meeting, const struct weft_plan *plan) {
    int npes = meeting->team->npes;
    return (plan->sender >= 0 && plan->sender < npes) ||
           weft_meeting_refuse(meeting, -EINVAL, "root is %d, but the team has %d members",
                               plan->sender, npes);
}

/* Only who sends has to have a source. */
static bool check_arrays(struct weft_meeting *meeting, const struct weft_vector *vector) {
    static const char instead[] = ": pass a stream, whose GPU does the work";
    const struct weft_plan *plan = &vector->plan;
    size_t npes = (size_t)meeting->team->npes, element = weft_element_bytes(vector->dtype);
    if (vector->nelems > (size_t)PTRDIFF_MAX / element / npes)
        return weft_meeting_refuse(meeting, -EINVAL, "nelems is %zu, more than memory has",
                                   vector->nelems);
    bool sends = weft_plan_sends(plan, meeting->team->my_pe);
    size_t dest = plan->dest_block ? npes : 1, source = plan->source_block ? npes : 1;
    return weft_check_pointer(meeting, "dest", vector->dest, dest * plan->pieces.bytes, instead) &&
           weft_check_pointer(meeting, "source", vector->source,
                              sends ? source * plan->pieces.bytes : 0, instead);
}

/* In the order of the table in coll/call.c. */
static void show_facts(struct weft_meeting *meeting, const struct weft_vector *vector) {
    uint64_t *fact = meeting->mine.facts;
    *fact++ = (uint64_t)vector->dtype;
    if (vector->op)
        *fact++ = (uint64_t)*vector->op;
    *fact++ = vector->nelems;
    if (vector->call == WEFT_CALL_BROADCAST)
        *fact = (uint64_t)vector->plan.sender;
}

static int move_in_meeting(shmem_team_t team, const struct weft_vector *vector) {
    struct weft_meeting meeting;
    int error = weft_meeting_open(&meeting, team, vector->call, WEFT_STREAM_HOST);
    if (error)
        return error;
    show_facts(&meeting, vector);
    if ((vector->call != WEFT_CALL_BROADCAST || check_root(&meeting, &vector->plan)) &&
        weft_check_type(&meeting, vector->dtype, vector->op) && check_arrays(&meeting, vector))
        weft_vector_offer(&meeting, vector);
    weft_meeting_post(&meeting);
    error = weft_meeting_agree(&meeting);
    if (!error)
        weft_vector_move(&meeting, vector);
    return weft_meeting_close(&meeting, error);
}

/* --- On a stream ----------------------------------------------------------------------------- */

/* What can be said without the team. */
static int check_type_on_stream(const struct weft_vector *vector) {
    char text[WEFT_WRONG_BYTES];
    bool wrong = weft_wrong_type(text, vector->dtype, vector->op);
    return wrong ? weft_fail(-EINVAL, "%s", text) : 0;
}

static int check_on_stream(const struct weft_on_stream *on, const struct weft_vector *vector) {
    int root = vector->plan.sender, npes = on->team->npes;
    if (vector->call == WEFT_CALL_BROADCAST && (root < 0 || root >= npes))
        return weft_fail(-EINVAL, "root is %d, but the team has %d members", root, npes);
    bool sends = weft_plan_sends(&vector->plan, on->team->my_pe) && vector->nelems > 0;
    return sends && !vector->source ? weft_fail(-EINVAL, "source is NULL") : 0;
}

static int enqueue_vector(const struct weft_on_stream *on, const struct weft_vector *vector) {
    int error = check_on_stream(on, vector);
    if (error)
        return error;
    if (!vector->op)
        return weft_on_stream_copy(on, &vector->plan, vector->dest, vector->source);
    struct weft_stream_folding folding = {weft_element_reduction(vector->dtype, *vector->op),
                                          vector->nelems, vector->plan.source_block != 0};
    return weft_on_stream_fold(on, vector->dest, vector->source, &folding);
}

static int move_on_stream(shmem_team_t team, const struct weft_vector *vector, weft_stream stream) {
    int error = check_type_on_stream(vector);
    if (error)
        return error;
    if (weft_job.npes > 0 && weft_job_aborted())
        weft_job_die_aborted();
    struct weft_on_stream on = {.stream = (weft_cu_stream)stream};
    error = weft_on_stream_begin(&on, team);
    return error ? error : weft_on_stream_end(&on, enqueue_vector(&on, vector));
}

static int move_vector(shmem_team_t team, const struct weft_vector *vector, weft_stream stream) {
    WEFT_IN_CALL(weft_call_name(vector->call));
    return stream == WEFT_STREAM_HOST ? move_in_meeting(team, vector)
                                      : move_on_stream(team, vector, stream);
}

/* --- The names ------------------------------------------------------------------------------- */

static size_t block_bytes(size_t nelems, weft_dtype dtype) {
    return weft_saturated(nelems, weft_element_bytes(dtype));
}

int weft_broadcast(shmem_team_t team, void *dest, const void *source, size_t nelems,
                   weft_dtype dtype, int root, weft_stream stream) {
    size_t bytes = block_bytes(nelems, dtype);
    struct weft_vector vector = {
        WEFT_CALL_BROADCAST, dest, source, nelems, dtype, weft_plan_broadcast(bytes, root), NULL};
    return move_vector(team, &vector, stream);
}

int weft_all_gather(shmem_team_t team, void *dest, const void *source, size_t nelems,
                    weft_dtype dtype, weft_stream stream) {
    size_t bytes = block_bytes(nelems, dtype);
    struct weft_vector vector = {WEFT_CALL_ALL_GATHER,      dest, source, nelems, dtype,
                                 weft_plan_fcollect(bytes), NULL};
    return move_vector(team, &vector, stream);
}

int weft_all_to_all(shmem_team_t team, void *dest, const void *source, size_t nelems,
                    weft_dtype dtype, weft_stream stream) {
    size_t bytes = block_bytes(nelems, dtype);
    struct weft_vector vector = {WEFT_CALL_ALL_TO_ALL,      dest, source, nelems, dtype,
                                 weft_plan_alltoall(bytes), NULL};
    return move_vector(team, &vector, stream);
}

int weft_all_reduce(shmem_team_t team, void *dest, const void *source, size_t nelems,
                    weft_dtype dtype, weft_op op, weft_stream stream) {
    size_t bytes = block_bytes(nelems, dtype);
    struct weft_vector vector = {WEFT_CALL_ALL_REDUCE,    dest, source, nelems, dtype,
                                 weft_plan_reduce(bytes), &op};
    return move_vector(team, &vector, stream);
}

int weft_reduce_scatter(shmem_team_t team, void *dest, const void *source, size_t nelems,
                        weft_dtype dtype, weft_op op, weft_stream stream) {
    size_t bytes = block_bytes(nelems, dtype);
    struct weft_vector vector = {WEFT_CALL_REDUCE_SCATTER,        dest, source, nelems, dtype,
                                 weft_plan_reduce_scatter(bytes), &op};
    return move_vector(team, &vector, stream);
}
