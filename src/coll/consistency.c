/* SPDX-License-Identifier: BSD-3-Clause */
/* Every member posts its call and compares the others' with it. */
#include "coll/consistency.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "base/clock.h"
#include "base/log.h"
#include "core/job.h"

static const uint64_t patience_ns = 10 * UINT64_C(1000000000);

/* The mark tells it from the posts of tensor calls. */
enum { CALL_BYTES = 64, MARK = 0x43414c4c };
struct entry {
    uint32_t mark;
    char call[CALL_BYTES];
    int64_t values[WEFT_CONSISTENCY_FACTS];
};
_Static_assert(sizeof(struct entry) <= WEFT_POST_BYTES, "an entry fits into a post");

static void log_missing(struct weft_team *team, const char *call) {
    char list[256];
    size_t length = 0;
    for (int member = 0; member < team->npes && length < sizeof list - 16; member++)
        if (!weft_sync_posted(team, member))
            length += (size_t)snprintf(list + length, sizeof list - length, "%s%d",
                                       length ? ", " : "", weft_team_world_pe(team, member));
    weft_log("%s has waited 10 s for %s of its team's %d PEs to call it: PE %s", call,
             strchr(list, ',') ? "some" : "one", team->npes, list);
}

static void await(struct weft_team *team, int member, const char *call, uint64_t *deadline) {
    while (!weft_sync_peek_briefly(team, member, call))
        if (weft_clock_ns() >= *deadline) {
            log_missing(team, call);
            *deadline = UINT64_MAX;
        }
}

static void compare(const struct weft_team *team, int member, const struct entry *theirs,
                    const struct entry *mine, const struct weft_same *arguments) {
    int pe = weft_team_world_pe(team, member);
    if (theirs->mark != MARK)
        weft_job_panic("%s: PE %d makes a tensor call on this team instead: all members must make "
                       "the same collective calls in the same order",
                       mine->call, pe);
    if (strcmp(theirs->call, mine->call) != 0)
        weft_job_panic("%s: PE %d is in %s instead: all members of a team must make the same "
                       "collective calls in the same order",
                       mine->call, pe, theirs->call);
    for (int i = 0; arguments[i].argument; i++)
        if (theirs->values[i] != mine->values[i])
            weft_job_panic("%s: argument %s is %" PRId64 " here, but %" PRId64 " on PE %d: pass "
                           "the same on all PEs",
                           mine->call, arguments[i].argument, mine->values[i], theirs->values[i],
                           pe);
}

/* Who comes out first must not post again before all have read: posts alternate between two places,
 * and a member posts the next only when it has read all of this round. */
void weft_consistency_check(struct weft_team *team, const char *call,
                            const struct weft_same *arguments) {
    struct entry mine = {.mark = MARK};
    uint64_t deadline = weft_clock_ns() + patience_ns;
    snprintf(mine.call, sizeof mine.call, "%s", call);
    for (int i = 0; arguments[i].argument; i++)
        mine.values[i] = arguments[i].value;
    weft_sync_post(team, &mine, sizeof mine);
    for (int member = 0; member < team->npes; member++)
        await(team, member, call, &deadline);
    for (int member = 0; member < team->npes; member++) {
        struct entry theirs;
        memcpy(&theirs, weft_sync_peek(team, member, call), sizeof theirs);
        compare(team, member, &theirs, &mine, arguments);
    }
}
