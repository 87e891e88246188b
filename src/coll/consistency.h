/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether all members of a team make the same collective call with the same arguments, and whether
 * they come at all. For checked mode: a round of posts in front of every collective call. */
#ifndef WEFT_COLL_CONSISTENCY_H
#define WEFT_COLL_CONSISTENCY_H

#include <stdint.h>
#include "core/sync.h"

#define WEFT_CONSISTENCY_FACTS 6

/* An argument that must be the same on all members; the name is the public one. */
struct weft_same {
    const char *argument;
    int64_t value;
};

/* Ends the job with one line when members make different calls, or pass a different value for one
 * of the arguments, whose list ends with a NULL name. Names those who have not come after 10
 * seconds, once, and goes on waiting. */
void weft_consistency_check(struct weft_team *team, const char *call,
                            const struct weft_same *arguments);

#endif
