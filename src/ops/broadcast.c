/* SPDX-License-Identifier: BSD-3-Clause */
/* weft_broadcast: arguments and agreement; coll/vector.h moves the data, and on streams
 * ops/on_stream.h. */
#include <errno.h>
#include <weft.h>
#include "ops/check.h"
#include "ops/on_stream.h"

static bool check_root(struct weft_meeting *meeting, int root) {
    bool right = root >= 0 && root < meeting->team->npes;
    if (!right)
        weft_meeting_refuse(meeting, -EINVAL, "root is %d, but the team has %d members", root,
                            meeting->team->npes);
    return right;
}

int weft_broadcast(shmem_team_t team, void *dest, const void *source, size_t nelems,
                   weft_dtype dtype, int root, weft_stream stream) {
    struct weft_vector vector = {.dest = dest, .source = source, .nelems = nelems, .dtype = dtype};
    struct weft_meeting meeting;
    if (stream != WEFT_STREAM_HOST)
        return weft_vector_broadcast_on_stream(__func__, team, &vector, root, stream);
    int error = weft_meeting_open(&meeting, team, WEFT_CALL_BROADCAST, stream);
    if (error)
        return error;
    meeting.mine.facts[0] = (uint64_t)dtype;
    meeting.mine.facts[1] = nelems;
    meeting.mine.facts[2] = (uint64_t)root;
    if (check_root(&meeting, root) &&
        weft_check_vector(&meeting, &vector, meeting.team->my_pe == root, 1))
        weft_broadcast_offer(&meeting, &vector, root);
    weft_meeting_post(&meeting);
    error = weft_meeting_agree(&meeting);
    if (!error)
        weft_broadcast_move(&meeting, &vector, root);
    return weft_meeting_close(&meeting, error);
}
