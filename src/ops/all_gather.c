/* SPDX-License-Identifier: BSD-3-Clause */
/* weft_all_gather: arguments and agreement; coll/vector.h moves the data, and on streams
 * ops/on_stream.h. */
#include <weft.h>
#include "ops/check.h"
#include "ops/on_stream.h"

int weft_all_gather(shmem_team_t team, void *dest, const void *source, size_t nelems,
                    weft_dtype dtype, weft_stream stream) {
    struct weft_vector vector = {.dest = dest, .source = source, .nelems = nelems, .dtype = dtype};
    struct weft_meeting meeting;
    if (stream != WEFT_STREAM_HOST)
        return weft_vector_exchange_on_stream(__func__, team, &vector, stream,
                                              weft_fcollect_on_stream);
    int error = weft_meeting_open(&meeting, team, WEFT_CALL_ALL_GATHER, stream);
    if (error)
        return error;
    meeting.mine.facts[0] = (uint64_t)dtype;
    meeting.mine.facts[1] = nelems;
    if (weft_check_vector(&meeting, &vector, 1, meeting.team->npes))
        weft_all_gather_offer(&meeting, &vector);
    weft_meeting_post(&meeting);
    error = weft_meeting_agree(&meeting);
    if (!error)
        weft_all_gather_move(&meeting, &vector);
    return weft_meeting_close(&meeting, error);
}
