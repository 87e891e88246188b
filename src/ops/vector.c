/* SPDX-License-Identifier: BSD-3-Clause */
/* The collectives of vectors: each is a plan, on which the members agree in a meeting
 * (coll/vector.h), or which is enqueued on a stream (coll/on_stream.h).
 *
 * On a stream the members do not compare their arguments, because the host would have to wait for
 * them. So a wrong argument is an error of this member alone, which has then enqueued nothing. */
#include <errno.h>
#include "coll/on_stream.h"
#include "coll/vector.h"
#include "ops/check.h"

static int check_root(const struct weft_team *team, const struct weft_vector *vector) {
    int root = vector->plan.sender, npes = team->npes;
    if (vector->call != WEFT_CALL_BROADCAST || (root >= 0 && root < npes))
        return 0;
    return weft_fail_bare(-EINVAL, "root is %d, but the team has %d members", root, npes);
}

/* --- In a meeting ---------------------------------------------------------------------------- */

/* Only a member that sends needs a source. */
static int check_arrays(const struct weft_team *team, const struct weft_vector *vector) {
    static const char instead[] = ": pass a stream, whose GPU does the work";
    const struct weft_plan *plan = &vector->plan;
    size_t npes = (size_t)team->npes, element = weft_element_bytes(vector->dtype);
    if (vector->nelems > (size_t)PTRDIFF_MAX / element / npes)
        return weft_fail_bare(-EINVAL, "nelems is %zu, more than memory has", vector->nelems);
    bool sends = weft_plan_sends(plan, team->my_pe);
    size_t dest = plan->dest_block ? npes : 1, source = plan->source_block ? npes : 1;
    int error = weft_check_pointer("dest", vector->dest, dest * plan->pieces.bytes, instead);
    return error ? error
                 : weft_check_pointer("source", vector->source,
                                      sends ? source * plan->pieces.bytes : 0, instead);
}

/* Writes the facts of the offer in the order of the table in coll/call.c. */
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
    show_facts(&meeting, vector);
    error = error ? error : check_root(meeting.team, vector);
    error = error ? error : weft_check_type(vector->dtype, vector->op);
    error = error ? error : check_arrays(meeting.team, vector);
    error = error ? error : weft_vector_offer(&meeting, vector);
    weft_meeting_post(&meeting, error);
    error = weft_meeting_agree(&meeting);
    if (!error)
        weft_vector_move(&meeting, vector);
    return weft_meeting_close(&meeting, error);
}

/* --- On a stream ----------------------------------------------------------------------------- */

static int enqueue_vector(const struct weft_on_stream *on, const struct weft_vector *vector) {
    int error = check_root(on->team, vector);
    if (error)
        return weft_check_fail_named(error);
    if (!vector->source && vector->nelems > 0 && weft_plan_sends(&vector->plan, on->team->my_pe))
        return weft_fail(-EINVAL, "source is NULL");
    if (!vector->op)
        return weft_on_stream_copy(on, &vector->plan, vector->dest, vector->source);
    struct weft_stream_folding folding = {
        .reduction = weft_element_reduction(vector->dtype, *vector->op),
        .nelems = vector->nelems,
        .scatter = vector->plan.source_block != 0,
    };
    return weft_on_stream_fold(on, vector->dest, vector->source, &folding);
}

static int move_on_stream(shmem_team_t team, const struct weft_vector *vector, weft_stream stream) {
    int error = weft_check_type(vector->dtype, vector->op);
    if (error)
        return weft_check_fail_named(error);
    struct weft_on_stream on = {.stream = (weft_cu_stream)stream};
    error = weft_on_stream_enter(&on, team);
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
