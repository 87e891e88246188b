/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether the members of a team take the same way in a call on a stream: else their kernels wait
 * for each other for ever. Settings of the environment have been compared before
 * (device/channels.c); an engine that a program sets, it may set on some members alone.
 *
 * Hosts need not meet in such calls. So each member shows its last ones, by their number, and who
 * comes second compares: in checked mode, or where the engine is not left to the library. */
#ifndef WEFT_COLL_SAME_WAY_H
#define WEFT_COLL_SAME_WAY_H

#include "core/sync.h"
#include "coll/stream_choice.h"

/* Before the call enqueues anything. Ends the job where another member has gone another way. */
void weft_same_way_check(const struct weft_team *team, enum weft_stream_way way);

#endif
