/* SPDX-License-Identifier: BSD-3-Clause */
/* A collective whose payload crosses from host to host: pieces are pushed into the dest of members
 * that are far, and a word of the receiver says how many have come: in a team one for each sender
 * (core/sync.h), in an active set a count in its pSync. */
#ifndef WEFT_COLL_HOST_PUSH_H
#define WEFT_COLL_HOST_PUSH_H

#include "coll/group.h"

struct weft_host_push {
    const struct weft_group *group;
    struct weft_levels *levels;
    uint32_t before; /* pushes of the team's earlier calls */
};

/* Nothing has crossed yet; what is not ended is given back. */
struct weft_host_push weft_host_push_of(const struct weft_group *group);
void weft_host_push_give_back(struct weft_host_push *push);

/* All members meet; what this one has begun before is complete, and pushes begin. `most`: so many
 * go from one member to another at most, the same on all. */
void weft_host_push_meet(struct weft_host_push *push, uint32_t most);

/* When all has come that comes to this member: then its near members have done with its arrays. */
void weft_host_push_end(struct weft_host_push *push);

/* To a far member's dest, which is named by the one here: the number-th push of this member to that
 * one, from 1 on. The source is the caller's again on return; `bytes` may be 0. */
void weft_host_push_send(const struct weft_host_push *push, enum weft_push why, void *dest,
                         const void *source, size_t bytes, uint32_t number, int member);

/* Waits until that many pushes of a far member have come to this one, or to the near one `at`; in
 * an active set until `all` have. */
void weft_host_push_await(const struct weft_host_push *push, enum weft_push why, int from,
                          uint32_t number, uint32_t all, int at);

/* --- Members of this host -------------------------------------------------------------------- */

static inline bool weft_host_push_is_near(const struct weft_host_push *push, int member) {
    return push->levels->hosts[member] == push->levels->leader;
}

static inline int weft_host_push_count(const struct weft_host_push *push) {
    return push->levels->near;
}

/* By its number on the host. */
static inline int weft_host_push_near(const struct weft_host_push *push, int rank) {
    const struct weft_levels *levels = push->levels;
    return levels->members[levels->begins[levels->leader] + rank];
}

/* The member of another host that takes for it what one with this rank pushes there. */
static inline int weft_host_push_taker(const struct weft_host_push *push, int host, int rank) {
    const struct weft_levels *levels = push->levels;
    return levels->members[levels->begins[host] + rank % weft_levels_count(levels, host)];
}

#endif
