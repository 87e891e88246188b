/* SPDX-License-Identifier: BSD-3-Clause */
/* Types and operations become bytes and reductions. */
#include "ops/on_stream.h"
#include <errno.h>
#include "base/log.h"
#include "coll/elements.h"
#include "core/job.h"
#include "ops/check.h"

static int check_dtype(const char *call, weft_dtype dtype) {
    char text[WEFT_WRONG_BYTES];
    return weft_wrong_dtype(text, dtype) ? weft_fail(-EINVAL, "%s: %s", call, text) : 0;
}

static int check_op(const char *call, weft_op op, weft_dtype dtype) {
    char text[WEFT_WRONG_BYTES];
    return weft_wrong_op(text, op, dtype) ? weft_fail(-EINVAL, "%s: %s", call, text) : 0;
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

static size_t bytes_of(const struct weft_vector *vector) {
    return weft_saturated(vector->nelems, weft_element_bytes(vector->dtype));
}

int weft_vector_reduce_on_stream(const char *call, shmem_team_t team,
                                 const struct weft_vector *vector, weft_stream stream,
                                 weft_reduction_on_stream *how) {
    struct weft_on_stream on = {.stream = (weft_cu_stream)stream, .call = call};
    int rc = check_op(call, vector->op, vector->dtype);
    rc = rc ? rc : check_source(call, vector);
    rc = rc ? rc : begin(&on, team);
    if (rc)
        return rc;
    struct weft_reduction reduction = weft_element_reduction(vector->dtype, vector->op);
    return weft_on_stream_end(&on,
                              how(&on, vector->dest, vector->source, vector->nelems, reduction));
}

int weft_vector_exchange_on_stream(const char *call, shmem_team_t team,
                                   const struct weft_vector *vector, weft_stream stream,
                                   weft_exchange_on_stream *how) {
    struct weft_on_stream on = {.stream = (weft_cu_stream)stream, .call = call};
    int rc = check_dtype(call, vector->dtype);
    rc = rc ? rc : check_source(call, vector);
    rc = rc ? rc : begin(&on, team);
    if (rc)
        return rc;
    return weft_on_stream_end(&on, how(&on, vector->dest, vector->source, bytes_of(vector)));
}

static int broadcast(const struct weft_on_stream *on, const struct weft_vector *vector, int root) {
    if (root < 0 || root >= on->team->npes)
        return weft_fail(-EINVAL, "%s: root is %d, but the team has %d members", on->call, root,
                         on->team->npes);
    int rc = root == on->team->my_pe ? check_source(on->call, vector) : 0;
    return rc ? rc
              : weft_broadcast_on_stream(on, vector->dest, vector->source, bytes_of(vector), root);
}

int weft_vector_broadcast_on_stream(const char *call, shmem_team_t team,
                                    const struct weft_vector *vector, int root,
                                    weft_stream stream) {
    struct weft_on_stream on = {.stream = (weft_cu_stream)stream, .call = call};
    int rc = check_dtype(call, vector->dtype);
    rc = rc ? rc : begin(&on, team);
    return rc ? rc : weft_on_stream_end(&on, broadcast(&on, vector, root));
}
