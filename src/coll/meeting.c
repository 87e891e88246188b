/* SPDX-License-Identifier: BSD-3-Clause */
/* One round of posts carries the offers. Every member compares all offers with member 0's, in the
 * same order, so all get the same result and the same text without another message. */
#include "coll/meeting.h"
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include "coll/consistency.h"
#include "coll/elements.h"
#include "coll/lost_member.h"

/* Checked mode may read an offer as an entry. It recognises the offer by its status, which is not
 * the mark of entries, and finds the call at the place of an entry's. */
_Static_assert(offsetof(struct weft_offer, call) == offsetof(struct weft_entry, call),
               "the call of a post has one place");

static _Thread_local uint64_t waited_ns;

int weft_meeting_open(struct weft_meeting *meeting, shmem_team_t team, enum weft_call call,
                      weft_stream stream) {
    struct weft_team *found = weft_team_find(team);
    meeting->team = found ? found : weft_lost_member_find_team();
    meeting->data_bytes = 0;
    meeting->waited_ns_before = weft_waited_ns;
    memset(&meeting->mine, 0, offsetof(struct weft_offer, data));
    meeting->mine.call = call;
    if (!found)
        return weft_fail_bare(-EINVAL, "team is not a team that this PE is a member of");
    if (stream != WEFT_STREAM_HOST)
        return weft_fail_bare(-ENOTSUP, "stream is not WEFT_STREAM_HOST");
    return 0;
}

void weft_meeting_post(struct weft_meeting *meeting, int error) {
    struct weft_offer *mine = &meeting->mine;
    if (error) {
        mine->status = error;
        meeting->data_bytes = sizeof mine->text;
        snprintf(mine->text, sizeof mine->text, "%s", weft_fail_text());
    }
    if (meeting->team && meeting->team->npes > 1)
        weft_sync_post(meeting->team, mine,
                       offsetof(struct weft_offer, data) + meeting->data_bytes);
}

bool weft_meeting_complete(const struct weft_meeting *meeting) {
    for (int distance = 1; distance < meeting->team->npes; distance++)
        if (!weft_sync_posted(meeting->team, weft_team_member_after(meeting->team, distance)))
            return false;
    return true;
}

const struct weft_offer *weft_meeting_offer(const struct weft_meeting *meeting, int member) {
    if (member == meeting->team->my_pe)
        return &meeting->mine;
    return weft_sync_peek(meeting->team, member);
}

uint64_t weft_meeting_largest(const struct weft_meeting *meeting, size_t offset) {
    uint64_t most = 0, theirs;
    for (int member = 0; member < meeting->team->npes; member++) {
        const char *offer = (const char *)weft_meeting_offer(meeting, member);
        memcpy(&theirs, offer + offset, sizeof theirs);
        most = theirs > most ? theirs : most;
    }
    return most;
}

/* Returns the value of a fact as users write it. */
static const char *value_text(const char *fact, uint64_t value, char text[32]) {
    if (strstr(fact, "dtype"))
        return weft_element_name((weft_dtype)value);
    if (strcmp(fact, "op") == 0)
        return weft_op_name((weft_op)value);
    snprintf(text, 32, "%llu", (unsigned long long)value);
    return text;
}

/* Compares a member's facts with member 0's. Returns 0, or -EINVAL with text on the first
 * difference.
 */
static int compare_offers(const struct weft_meeting *meeting, int member,
                          const struct weft_offer *first, const struct weft_offer *offer) {
    int pe = weft_team_world_pe(meeting->team, member), pe0 = weft_team_world_pe(meeting->team, 0);
    if (offer->call != first->call)
        return weft_fail_bare(-EINVAL,
                              "%s on PE %d, but %s on PE %d: members must make the same calls",
                              weft_call_name(first->call), pe0, weft_call_name(offer->call), pe);
    const char *const *names = weft_calls[first->call].facts;
    for (int fact = 0; fact < WEFT_OFFER_FACTS && names[fact]; fact++) {
        uint64_t theirs = offer->facts[fact], common = first->facts[fact];
        char text[2][32];
        if (theirs != common)
            return weft_fail(-EINVAL, "%s is %s on PE %d, but %s on PE %d", names[fact],
                             value_text(names[fact], common, text[0]), pe0,
                             value_text(names[fact], theirs, text[1]), pe);
    }
    return 0;
}

/* Fails because a member has posted an entry of checked mode: it is in another call. */
static int fail_elsewhere(const struct weft_meeting *meeting, int member,
                          const struct weft_offer *offer) {
    struct weft_entry entry;
    memcpy(&entry, offer, sizeof entry);
    return weft_fail(-EINVAL,
                     "PE %d is in %.*s instead: all members must make the same collective "
                     "calls in the same order",
                     weft_team_world_pe(meeting->team, member), (int)sizeof entry.call, entry.call);
}

/* Returns the error of the first member that refuses, with text, or 0. */
static int find_refusal(const struct weft_meeting *meeting) {
    for (int member = 0; member < meeting->team->npes; member++) {
        const struct weft_offer *offer = weft_meeting_offer(meeting, member);
        if (offer->status == WEFT_ENTRY_MARK)
            return fail_elsewhere(meeting, member, offer);
        if (offer->status)
            return weft_fail(offer->status, "PE %d: %.*s",
                             weft_team_world_pe(meeting->team, member), WEFT_OFFER_BYTES,
                             offer->text);
    }
    return 0;
}

static void await_offer(const struct weft_meeting *meeting, int member) {
    struct weft_waiter waiter = {0};
    while (!weft_sync_peek_briefly(meeting->team, member, &waiter))
        weft_lost_member_answer(meeting->team, member);
    weft_waiter_end(&waiter);
}

/* Waits for all members even if one refuses, because members must not post again before. Looks for
 * refusals before it compares, because the facts of a member that refuses are not set. */
int weft_meeting_agree(struct weft_meeting *meeting) {
    if (!meeting->team)
        return weft_fail(meeting->mine.status, "%s", meeting->mine.text);
    int npes = meeting->team->npes;
    for (int distance = 1; distance < npes; distance++)
        await_offer(meeting, weft_team_member_after(meeting->team, distance));
    int error = find_refusal(meeting);
    const struct weft_offer *first = weft_meeting_offer(meeting, 0);
    for (int member = 1; member < npes && !error; member++)
        error = compare_offers(meeting, member, first, weft_meeting_offer(meeting, member));
    return error;
}

int weft_meeting_settle(struct weft_meeting *meeting, int error) {
    if (meeting->team->npes == 1)
        return error;
    bool all_done = weft_sync_min(meeting->team, error == 0);
    if (all_done || error)
        return error;
    return weft_fail(-EIO, "another member could not compute its part: the "
                           "outputs of all members are incomplete");
}

int weft_meeting_close(struct weft_meeting *meeting, int error) {
    waited_ns += weft_waited_ns - meeting->waited_ns_before;
    return error;
}

double weft_meeting_waited(void) {
    double seconds = (double)waited_ns * 1e-9;
    waited_ns = 0;
    return seconds;
}
