/* SPDX-License-Identifier: BSD-3-Clause */
/* Who takes part in one data-moving collective, and how they wait for one another.
 *
 * Members are numbered 0 to npes - 1. A team has packets for small payloads (coll/packet.h) besides
 * its barrier, an active set (coll/active.h) only words that count. A group lives as long as
 * one call. */
#ifndef WEFT_COLL_GROUP_H
#define WEFT_COLL_GROUP_H

#include <stdbool.h>
#include <stddef.h>
#include "core/sync.h"

struct weft_same;

/* Why members push to far ones (coll/host_push.h). In an active set what comes to a member for one
 * reason counts together. */
enum weft_push {
    WEFT_PUSH_ON,     /* from one member */
    WEFT_PUSH_BACK,   /* from another one */
    WEFT_PUSH_ACROSS, /* from several */
    WEFT_PUSHES
};

struct weft_group;

/* What an active set has besides. */
struct weft_set_calls {
    /* sizes[member] = what each member has passed as `mine`; a sync follows. */
    void (*share)(const struct weft_group *group, size_t mine, size_t *sizes);

    /* All members make this call with these arguments. */
    void (*check)(const struct weft_group *group, const struct weft_same *arguments);

    /* Counts of what was pushed: one more at a far member, behind what has been put there; a wait
     * until a near member or this one has so many; and none here, before a sync or behind one. */
    void (*count)(const struct weft_group *group, enum weft_push why, int member);
    void (*await)(const struct weft_group *group, enum weft_push why, uint32_t count, int near);
    void (*clear)(const struct weft_group *group);
};

struct weft_group {
    int me, npes;
    struct weft_member_list member_list;
    struct weft_team *team; /* NULL for an active set */
    long *psync;            /* of an active set */

    /* No member leaves before every member has entered; stores before it are visible after it. */
    void (*sync)(const struct weft_group *group);

    const struct weft_set_calls *set; /* of an active set */

    bool far; /* some member is: its memory is not mapped here */
};

/* The sum of what all members have passed as `mine`; each has passed it when one returns. */
size_t weft_group_sum(const struct weft_group *group, size_t mine);

void weft_group_sync_team(const struct weft_group *group);

/* Every field is named, because a compiler that clears the rest does it by stores that overlap. */
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

/* The members in the order in which one visits them: itself, the next one, ..., so that no
 * member's memory is read by all at once. */
static inline int weft_group_member(const struct weft_group *group, int distance) {
    int member = group->me + distance;
    return member >= group->npes ? member - group->npes : member;
}

/* Where a near member keeps its copy of the symmetric [p, p + bytes), or of a part of the team's
 * workspace. Ends the job where it has
 * none: only a size that differs between members gets so far. */
void *weft_group_near(const struct weft_group *group, const void *p, size_t bytes, int member);
_Noreturn void weft_group_lacks(const struct weft_group *group, const void *p, size_t bytes,
                                int member);

#endif
