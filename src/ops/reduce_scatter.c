/* SPDX-License-Identifier: BSD-3-Clause */
/* weft_reduce_scatter: arguments and agreement; coll/vector.h moves the data, and on streams
 * ops/on_stream.h. */
#include <weft.h>
#include "ops/check.h"
#include "ops/on_stream.h"

int weft_reduce_scatter(shmem_team_t team, void *dest, const void *source, size_t nelems,
                        weft_dtype dtype, weft_op op, weft_stream stream) {
    struct weft_vector vector = {dest, source, nelems, dtype, op};
    struct weft_meeting meeting;
    if (stream != WEFT_STREAM_HOST)
        return weft_vector_reduce_on_stream(__func__, team, &vector, stream,
                                            weft_reducescatter_on_stream);
    int error = weft_meeting_open(&meeting, team, WEFT_CALL_REDUCE_SCATTER, stream);
    if (error)
        return error;
    meeting.mine.facts[0] = (uint64_t)dtype;
    meeting.mine.facts[1] = (uint64_t)op;
    meeting.mine.facts[2] = nelems;
    if (weft_check_op(&meeting, op, dtype) &&
        weft_check_vector(&meeting, &vector, meeting.team->npes, 1))
        weft_reduce_scatter_offer(&meeting, &vector);
    weft_meeting_post(&meeting);
    error = weft_meeting_agree(&meeting);
    if (!error)
        weft_reduce_scatter_move(&meeting, &vector);
    return weft_meeting_close(&meeting, error);
}
