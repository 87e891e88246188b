/* SPDX-License-Identifier: BSD-3-Clause */
/* weft_reserve: allocates the memory of a team's calls ahead of time. */
#include <weft.h>
#include "coll/meeting.h"
#include "coll/on_stream.h"

int weft_reserve(shmem_team_t team, size_t bytes) {
    WEFT_IN_CALL(__func__);
    struct weft_meeting meeting;
    int error = weft_meeting_open(&meeting, team, WEFT_CALL_RESERVE, WEFT_STREAM_HOST);
    error = error ? error : weft_team_workspace_commit(meeting.team, bytes);
    weft_meeting_post(&meeting, error);
    error = weft_meeting_agree(&meeting);
    error = error ? error : weft_on_stream_reserve(meeting.team);
    return weft_meeting_close(&meeting, error);
}
