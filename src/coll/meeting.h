/* SPDX-License-Identifier: BSD-3-Clause */
/* The beginning of a tensor call: every member posts an offer, and all get the same result.
 *
 *   open       find the team
 *   ...        check the arguments, and prepare the offer
 *   post       post the offer to the team, or the first error of the steps before
 *   agree      read all offers; return 0, or the same -errno on every member, with text
 *   ...        the work of the call; offers stay readable
 *   settle     if that work can fail: wait for all members, and fail on all if it failed on one
 *   close      account for the time spent waiting
 *
 * A call that has posted must agree before it returns, and no output is written before that. Calls
 * whose inputs or workspace peers read end with weft_sync_barrier or settle; a call whose data were
 * all inside the offers need not. */
#ifndef WEFT_COLL_MEETING_H
#define WEFT_COLL_MEETING_H

#include <stdbool.h>
#include <weft.h>
#include "coll/call.h"
#include "coll/place.h"

#define WEFT_OFFER_BYTES 128

/* The post of one member. The facts that are named in the table of coll/call.c must be the same on
 * all members. */
struct weft_offer {
    int32_t status; /* 0, or the negative errno of a refusal whose reason is in text */
    uint32_t call;
    uint64_t facts[WEFT_OFFER_FACTS];
    struct weft_place input, output;
    union {
        unsigned char data[WEFT_OFFER_BYTES]; /* small inputs */
        char text[WEFT_OFFER_BYTES];
    };
};
_Static_assert(sizeof(struct weft_offer) == WEFT_POST_BYTES, "an offer fills a post");

struct weft_meeting {
    struct weft_team *team;
    size_t data_bytes; /* of mine.data */
    uint64_t waited_ns_before;
    struct weft_offer mine;
};

/* Returns 0 or -errno with text, which the caller passes to weft_meeting_post like an error of its
 * own checks: a team that waits for this PE gets the error even if `team` is wrong. */
int weft_meeting_open(struct weft_meeting *meeting, shmem_team_t team, enum weft_call call,
                      weft_stream stream);

/* Posts the offer or, if `error` is not 0, a refusal with the text of weft_fail_text. */
void weft_meeting_post(struct weft_meeting *meeting, int error);
bool weft_meeting_complete(const struct weft_meeting *meeting); /* all members have posted */
int weft_meeting_agree(struct weft_meeting *meeting);

/* Returns a member's offer; after agree. */
const struct weft_offer *weft_meeting_offer(const struct weft_meeting *meeting, int member);

/* Returns the largest of the numbers that lie at this offset of the members' offers. After agree.
 */
uint64_t weft_meeting_largest(const struct weft_meeting *meeting, size_t offset);

/* Waits for every member, like a barrier. Returns `error` unless it is 0, -EIO with text if another
 * member failed, or 0. */
int weft_meeting_settle(struct weft_meeting *meeting, int error);

/* Returns `error`. */
int weft_meeting_close(struct weft_meeting *meeting, int error);

/* Returns the seconds that this thread waited between open and close since the last query. */
double weft_meeting_waited(void);

#endif
