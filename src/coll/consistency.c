/* SPDX-License-Identifier: BSD-3-Clause */
/* Every member posts its call and compares it with the others' posts. */
#include "coll/consistency.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "coll/call.h"

_Static_assert(sizeof(struct weft_entry) <= WEFT_POST_BYTES, "an entry fits into a post");

struct weft_entry weft_entry_of(const struct weft_same *arguments) {
    struct weft_entry entry = {.mark = WEFT_ENTRY_MARK};
    snprintf(entry.call, sizeof entry.call, "%s", weft_current_call);
    for (int i = 0; arguments[i].argument; i++)
        entry.values[i] = arguments[i].value;
    return entry;
}

/* Returns the name of the call. A tensor call (coll/call.h) posts a number instead. */
static const char *entry_call(const struct weft_entry *entry) {
    uint32_t number;
    if (entry->mark == WEFT_ENTRY_MARK)
        return entry->call;
    memcpy(&number, entry->call, sizeof number);
    return weft_call_name(number);
}

void weft_entry_compare(const struct weft_entry *mine, const struct weft_entry *theirs,
                        const struct weft_same *arguments, int pe) {
    const char *there = entry_call(theirs);
    if (strcmp(there, mine->call) != 0)
        weft_job_panic("PE %d is in %s instead: all members must make the same collective calls in "
                       "the same order",
                       pe, there);
    for (int i = 0; arguments[i].argument; i++)
        if (theirs->values[i] != mine->values[i])
            weft_job_panic("argument %s is %" PRId64 " here, but %" PRId64 " on PE %d: pass "
                           "the same on all PEs",
                           arguments[i].argument, mine->values[i], theirs->values[i], pe);
}

/* A member that leaves first must not overwrite its post before all members have read it: posts
 * alternate between two places, and a member posts again only after it has read all posts of this
 * round. */
void weft_consistency_check(struct weft_team *team, const struct weft_same *arguments) {
    struct weft_entry mine = weft_entry_of(arguments), theirs;
    weft_sync_post(team, &mine, sizeof mine);
    for (int member = 0; member < team->npes; member++) {
        memcpy(&theirs, weft_sync_peek(team, member), sizeof theirs);
        weft_entry_compare(&mine, &theirs, arguments, weft_team_world_pe(team, member));
    }
}
