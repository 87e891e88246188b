/* SPDX-License-Identifier: BSD-3-Clause */
/* The members of one data-moving collective, and how they wait for each other.
 *
 * Members are numbered 0 to npes - 1. A team has packets for small payloads (coll/packet.h)
 * besides its barrier; an active set (coll/active.h) has only counting words. A group exists for
 * one call. */
#ifndef WEFT_COLL_GROUP_H
#define WEFT_COLL_GROUP_H

#include <stdbool.h>
#include <stddef.h>
#include "core/sync.h"

struct weft_same;

/* The kinds of pushes to far members (coll/host_push.h). An active set counts all pushes of one
 * kind to a member together. */
enum weft_push {
    WEFT_PUSH_ON,     /* from one member, to the next host */
    WEFT_PUSH_BACK,   /* from one member, to a previous host */
    WEFT_PUSH_ACROSS, /* from several members */
    WEFT_PUSHES
};

struct weft_group;

/* Functions that only an active set has. */
struct weft_set_calls {
    /* sizes[member] = the value that the member has passed as `mine`. Ends with a sync. */
    void (*share)(const struct weft_group *group, size_t mine, size_t *sizes);

    /* Ends the job unless all members make this call with these arguments. */
    void (*check)(const struct weft_group *group, const struct weft_same *arguments);

    /* Counters of pushes. count: adds one at a far member, after the data that was put there.
     * await: waits until the counter of a near member, or of this one, has reached `count`. clear:
     * sets this member's counters to 0, before a sync or after one. */
    void (*count)(const struct weft_group *group, enum weft_push why, int member);
    void (*await)(const struct weft_group *group, enum weft_push why, uint32_t count, int near);
    void (*clear)(const struct weft_group *group);
};

struct weft_group {
    int me, npes;
    struct weft_member_list member_list;
    struct weft_team *team; /* NULL for an active set */
    long *psync;            /* of an active set; otherwise NULL */

    /* No member leaves before every member has entered; stores before it are visible after it. */
    void (*sync)(const struct weft_group *group);

    const struct weft_set_calls *set; /* of an active set; otherwise NULL */

    bool far; /* some member is far: its memory is not mapped here */
};

/* Returns the sum of the values that all members pass as `mine`, after all members have called
 * it. */
size_t weft_group_sum(const struct weft_group *group, size_t mine);

void weft_group_sync_team(const struct weft_group *group);

/* Every field is named, because a compiler clears unnamed fields with stores that overlap. */
static inline struct weft_group weft_group_of(struct weft_team *team) {
    return (struct weft_group){.me = team->my_pe,
                               .npes = team->npes,
                               .member_list = team->member_list,
                               .team = team,
                               .psync = NULL,
                               .sync = weft_group_sync_team,
                               .set = NULL,
                               .far = team->far};
}

static inline int weft_group_pe(const struct weft_group *group, int member) {
    return weft_member_pe(&group->member_list, member);
}

/* Returns the member at a distance from this one. Members are visited in this order (itself, the
 * next one, ...), so that not all read one member's memory at once. */
static inline int weft_group_member(const struct weft_group *group, int distance) {
    int member = group->me + distance;
    return member >= group->npes ? member - group->npes : member;
}

/* Returns the address of a near member's copy of the symmetric [p, p + bytes), or of a part of the
 * team's workspace. Ends the job if the member has no such object, which happens only if sizes
 * differ between members. */
void *weft_group_near(const struct weft_group *group, const void *p, size_t bytes, int member);
_Noreturn void weft_group_lacks(const struct weft_group *group, const void *p, size_t bytes,
                                int member);

#endif
