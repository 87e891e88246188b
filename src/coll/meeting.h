/* SPDX-License-Identifier: BSD-3-Clause */
/* How a tensor call begins: every member shows what it brings, and all come to the same verdict.
 *
 *   open       find the team
 *   ...        check the own arguments, and prepare the offer
 *   post       show the offer to the team, or the error of what came before
 *   agree      read all offers: 0, or one and the same negative errno on every member, with text
 *   ...        the call's own work; offers stay readable
 *   settle     where that work can fail: wait for all, and fail on all if it failed on one
 *   close      account for the time spent waiting
 *
 * A call that has posted must agree before it returns, and no output is written before that. Calls
 * whose inputs or workspace peers read end with weft_sync_barrier or settle; a call that moved
 * everything inside the offers need not. */
#ifndef WEFT_COLL_MEETING_H
#define WEFT_COLL_MEETING_H

#include <stdbool.h>
#include <weft.h>
#include "coll/call.h"
#include "coll/place.h"

#define WEFT_OFFER_BYTES 128

/* What one member shows. The first facts must be the same on all members, by the table in
 * coll/call.c. */
struct weft_offer {
    int32_t status; /* 0, or the negative errno of a refusal whose reason is in text */
    uint32_t call;
    uint64_t facts[WEFT_OFFER_FACTS];
    struct weft_place input, output;
    union {
        unsigned char data[WEFT_OFFER_BYTES]; /* small inputs travel with the offer */
        char text[WEFT_OFFER_BYTES];
    };
};
_Static_assert(sizeof(struct weft_offer) == WEFT_POST_BYTES, "an offer fills a post");

struct weft_meeting {
    struct weft_team *team;
    size_t data_bytes; /* how much of mine.data counts */
    uint64_t waited_ns_before;
    struct weft_offer mine;
};

/* Returns 0 or -errno with text, which the caller passes to weft_meeting_post like an error of its
 * own checks: a team that misses this PE is told of it even if `team` is wrong. */
int weft_meeting_open(struct weft_meeting *meeting, shmem_team_t team, enum weft_call call,
                      weft_stream stream);

/* Posts the offer or, if `error` is not 0, a refusal with the text of weft_fail_text. */
void weft_meeting_post(struct weft_meeting *meeting, int error);
bool weft_meeting_complete(const struct weft_meeting *meeting); /* whether all have posted */
int weft_meeting_agree(struct weft_meeting *meeting);

/* A member's offer; after agree. */
const struct weft_offer *weft_meeting_offer(const struct weft_meeting *meeting, int member);

/* Returns the largest of the numbers that lie at this offset of the members' offers. After agree.
 */
uint64_t weft_meeting_largest(const struct weft_meeting *meeting, size_t offset);

/* Waits for every member, like a barrier, and says whether all succeeded: `error` if this one did
 * not, -EIO with text if only others did not, else 0. */
int weft_meeting_settle(struct weft_meeting *meeting, int error);

/* Returns `error`. */
int weft_meeting_close(struct weft_meeting *meeting, int error);

/* Seconds that this thread waited between open and close since it last asked. */
double weft_meeting_waited(void);

#endif
