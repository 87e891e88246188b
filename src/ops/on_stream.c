/* SPDX-License-Identifier: BSD-3-Clause */
/* Types and operations become bytes and reductions; coll/on_stream.h does the work. */
#include "ops/on_stream.h"
#include <errno.h>
#include "base/log.h"
#include "coll/elements.h"
#include "coll/on_stream.h"
#include "core/job.h"

static int check_dtype(const char *call, weft_dtype dtype) {
    if (weft_element_bytes(dtype) > 0)
        return 0;
    return weft_fail(-EINVAL, "%s: dtype is %d, which is no type", call, (int)dtype);
}

static int check_op(const char *call, weft_dtype dtype, weft_op op) {
    if (op < WEFT_SUM || op > WEFT_PROD)
        return weft_fail(-EINVAL, "%s: op is %d, which is no operation", call, (int)op);
    int rc = check_dtype(call, dtype);
    if (rc || weft_element_reduces(dtype, op))
        return rc;
    return weft_fail(-EINVAL, "%s: op is %s, which %s does not have", call, weft_op_name(op),
                     weft_element_name(dtype));
}

/* What is more than memory has, is, no array is found of. */
static size_t bytes_of(const struct weft_vector *vector) {
    size_t bytes, element = weft_element_bytes(vector->dtype);
    return __builtin_mul_overflow(vector->nelems, element, &bytes) ? SIZE_MAX : bytes;
}

static int check_source(const char *call, const struct weft_vector *vector) {
    if (vector->source || vector->nelems == 0)
        return 0;
    return weft_fail(-EINVAL, "%s: source is NULL", call);
}

static int begin(struct weft_on_stream *on, shmem_team_t team) {
    if (weft_job.npes > 0 && weft_job_aborted())
        weft_job_die_aborted(on->call);
    return weft_on_stream_begin(on, team);
}

/* --- Reductions ------------------------------------------------------------------------------ */

typedef int reduction(const struct weft_on_stream *, void *, const void *, size_t,
                      struct weft_reduction);

static int reduce(const char *call, shmem_team_t team, const struct weft_vector *v,
                  weft_stream stream, reduction *how) {
    struct weft_on_stream on = {.stream = (weft_cu_stream)stream, .call = call};
    int rc = check_op(call, v->dtype, v->op);
    rc = rc ? rc : check_source(call, v);
    rc = rc ? rc : begin(&on, team);
    if (rc)
        return rc;
    struct weft_reduction what = weft_element_reduction(v->dtype, v->op);
    return weft_on_stream_end(&on, how(&on, v->dest, v->source, v->nelems, what));
}

int weft_vector_all_reduce_on_stream(shmem_team_t team, const struct weft_vector *vector,
                                     weft_stream stream) {
    return reduce("weft_all_reduce", team, vector, stream, weft_reduce_on_stream);
}

int weft_vector_reduce_scatter_on_stream(shmem_team_t team, const struct weft_vector *vector,
                                         weft_stream stream) {
    return reduce("weft_reduce_scatter", team, vector, stream, weft_reducescatter_on_stream);
}

/* --- Moves ----------------------------------------------------------------------------------- */

typedef int exchange(const struct weft_on_stream *, void *, const void *, size_t);

static int move(const char *call, shmem_team_t team, const struct weft_vector *v,
                weft_stream stream, exchange *how) {
    struct weft_on_stream on = {.stream = (weft_cu_stream)stream, .call = call};
    int rc = check_dtype(call, v->dtype);
    rc = rc ? rc : check_source(call, v);
    rc = rc ? rc : begin(&on, team);
    if (rc)
        return rc;
    return weft_on_stream_end(&on, how(&on, v->dest, v->source, bytes_of(v)));
}

int weft_vector_all_gather_on_stream(shmem_team_t team, const struct weft_vector *vector,
                                     weft_stream stream) {
    return move("weft_all_gather", team, vector, stream, weft_fcollect_on_stream);
}

int weft_vector_all_to_all_on_stream(shmem_team_t team, const struct weft_vector *vector,
                                     weft_stream stream) {
    return move("weft_all_to_all", team, vector, stream, weft_alltoall_on_stream);
}

static int broadcast(const struct weft_on_stream *on, const struct weft_vector *v, int root) {
    if (root < 0 || root >= on->team->npes)
        return weft_fail(-EINVAL, "%s: root is %d, but the team has %d members", on->call, root,
                         on->team->npes);
    int rc = root == on->team->my_pe ? check_source(on->call, v) : 0;
    return rc ? rc : weft_broadcast_on_stream(on, v->dest, v->source, bytes_of(v), root);
}

int weft_vector_broadcast_on_stream(shmem_team_t team, const struct weft_vector *vector, int root,
                                    weft_stream stream) {
    struct weft_on_stream on = {.stream = (weft_cu_stream)stream, .call = "weft_broadcast"};
    int rc = check_dtype(on.call, vector->dtype);
    rc = rc ? rc : begin(&on, team);
    return rc ? rc : weft_on_stream_end(&on, broadcast(&on, vector, root));
}
