/* SPDX-License-Identifier: BSD-3-Clause */
/* The members of a team or active set grouped by host, if some are far. Members on one host are
 * near to each other; the first of them is the leader. (PEs of one machine that are in different
 * progressions, job/placement.h, count as on different hosts.) All members have the same values,
 * except for the last three. */
#ifndef WEFT_CORE_LEVELS_H
#define WEFT_CORE_LEVELS_H

#include <stdbool.h>
#include "job/member_list.h"

struct weft_levels {
    int nleaders;    /* number of hosts; they are numbered in the order of their first members */
    int least, most; /* members of the smallest and of the largest host */
    bool in_turn;    /* each host's members are consecutive, so `members` is 0, 1, 2, ... */
    int *leaders;    /* the first member of each host */
    int *begins;     /* where each host's members begin in `members`, and the end */
    int *members;    /* sorted by host, then by member number */
    int *places;     /* the index of each member in `members` */
    int *hosts;      /* the host of each member */
    int leader;      /* this member's host */
    int near;        /* members on this host */
    int before;      /* the PE before this one in a ring of this host's members */
};

/* Returns the levels, which the caller frees with free(), or NULL if there is no memory. */
struct weft_levels *weft_levels_of(const struct weft_member_list *member_list, int npes, int me);

/* Returns the number of members on a host; a member's rank on its host. */
static inline int weft_levels_count(const struct weft_levels *levels, int host) {
    return levels->begins[host + 1] - levels->begins[host];
}

static inline int weft_levels_rank(const struct weft_levels *levels, int member) {
    return levels->places[member] - levels->begins[levels->hosts[member]];
}

#endif
