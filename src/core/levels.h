/* SPDX-License-Identifier: BSD-3-Clause */
/* The members of a team or active set by hosts, where some are far. Members of a host are near to
 * each other; the first of them leads. (PEs of one machine that are in different progressions,
 * job/placement.h, count as of different hosts.) The same on all members, but for the last two. */
#ifndef WEFT_CORE_LEVELS_H
#define WEFT_CORE_LEVELS_H

#include <stdbool.h>
#include "job/member_list.h"

struct weft_levels {
    int nleaders;    /* hosts, numbered by their first members */
    int least, most; /* members of the host that has the fewest, the most */
    bool in_turn;    /* members of a host follow each other, so that `members` is 0, 1, 2, ... */
    int *leaders;    /* of each host */
    int *begins;     /* of each host, and of one more: where its members begin in */
    int *members;    /* one host behind the other, each in the order of members */
    int *places;     /* of each member in that list */
    int *hosts;      /* of each member */
    int leader;      /* the host of this member, */
    int near;        /* how many members that has, */
    int before;      /* and the PE of the one before this one, in a ring of those */
};

/* NULL: there is no memory. Whoever has it frees it, in one piece. */
struct weft_levels *weft_levels_of(const struct weft_member_list *member_list, int npes, int me);

/* How many members a host has; a member's number on its host. */
static inline int weft_levels_count(const struct weft_levels *levels, int host) {
    return levels->begins[host + 1] - levels->begins[host];
}

static inline int weft_levels_rank(const struct weft_levels *levels, int member) {
    return levels->places[member] - levels->begins[levels->hosts[member]];
}

#endif
