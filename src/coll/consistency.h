/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks whether all members of a team make the same collective call with the same arguments.
 * Checked mode makes a round of posts before every collective call. */
#ifndef WEFT_COLL_CONSISTENCY_H
#define WEFT_COLL_CONSISTENCY_H

#include <stddef.h>
#include <stdint.h>
#include "core/sync.h"

#define WEFT_CONSISTENCY_FACTS 8

/* An argument that must be the same on all members, by its public name. A list of arguments ends
 * with a NULL name. */
struct weft_same {
    const char *argument;
    int64_t value;
};

/* A call as members post it. The mark distinguishes it from the posts of tensor calls, which begin
 * with 0 or a negative errno (meeting.h). */
enum { WEFT_ENTRY_MARK = 0x43414c4c };
struct weft_entry {
    uint32_t mark;
    char call[44];
    int64_t values[WEFT_CONSISTENCY_FACTS];
};

#define WEFT_NO_ARGUMENTS ((const struct weft_same[]){{NULL, 0}})

struct weft_entry weft_entry_of(const struct weft_same *arguments);

/* Ends the job with an error line if PE `pe` makes another call, or passes a different value for
 * one of the arguments. */
void weft_entry_compare(const struct weft_entry *mine, const struct weft_entry *theirs,
                        const struct weft_same *arguments, int pe);

/* Ends the job unless all members of the team make this call with these arguments. Collective. */
void weft_consistency_check(struct weft_team *team, const struct weft_same *arguments);

#endif
