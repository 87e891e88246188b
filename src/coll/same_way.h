/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks that the members of a team take the same way in a call on a stream; otherwise their
 * kernels would wait for each other forever. Settings of the environment have already been compared
 * (device/channels.c), but a program may set an engine on some members only.
 *
 * Hosts need not meet in such calls. So each member shows its last calls, by their number, and the
 * later member compares: in checked mode, or if the engine is not left to the library. */
#ifndef WEFT_COLL_SAME_WAY_H
#define WEFT_COLL_SAME_WAY_H

#include "core/sync.h"
#include "coll/stream_choice.h"

/* Called before the call enqueues anything. Ends the job if another member has taken another
 * way. */
void weft_same_way_check(const struct weft_team *team, enum weft_stream_way way);

#endif
