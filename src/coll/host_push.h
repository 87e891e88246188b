/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives whose payload is sent from host to host: pieces are pushed into the dest of far
 * members, and a word of the receiver counts them: in a team one word for each sender
 * (core/sync.h), in an active set a counter in its pSync. */
#ifndef WEFT_COLL_HOST_PUSH_H
#define WEFT_COLL_HOST_PUSH_H

#include "coll/group.h"

struct weft_host_push {
    const struct weft_group *group;
    struct weft_levels *levels;
    uint32_t before; /* the count after the team's earlier calls */
};

/* weft_host_push_of returns the state of a call that has not sent anything. The caller ends it with
 * weft_host_push_end, or else gives it back. */
struct weft_host_push weft_host_push_of(const struct weft_group *group);
void weft_host_push_give_back(struct weft_host_push *push);

/* Waits for all members, after the earlier operations of this member are complete. Then pushes may
 * begin. `most`: the largest number of pushes from one member to another, the same on all. */
void weft_host_push_meet(struct weft_host_push *push, uint32_t most);

/* Called when everything that is sent to this member has arrived. On return its near members no
 * longer access its arrays. */
void weft_host_push_end(struct weft_host_push *push);

/* Pushes to a far member's dest, given by its address on this PE. `number` counts the pushes of
 * this member to that one, from 1 on. The caller may write the source on return; `bytes` may be
 * 0. */
void weft_host_push_send(const struct weft_host_push *push, enum weft_push why, void *dest,
                         const void *source, size_t bytes, uint32_t number, int member);

/* Blocks until `number` pushes of a far member have arrived at the near member `at`, which may be
 * this one; in an active set, until `all` pushes have. */
void weft_host_push_await(const struct weft_host_push *push, enum weft_push why, int from,
                          uint32_t number, uint32_t all, int at);

/* --- Members of this host -------------------------------------------------------------------- */

static inline bool weft_host_push_is_near(const struct weft_host_push *push, int member) {
    return push->levels->hosts[member] == push->levels->leader;
}

static inline int weft_host_push_count(const struct weft_host_push *push) {
    return push->levels->near;
}

/* Returns the member with this rank on this host. */
static inline int weft_host_push_near(const struct weft_host_push *push, int rank) {
    const struct weft_levels *levels = push->levels;
    return levels->members[levels->begins[levels->leader] + rank];
}

/* Returns the member of another host that receives the pushes of members with this rank. */
static inline int weft_host_push_taker(const struct weft_host_push *push, int host, int rank) {
    const struct weft_levels *levels = push->levels;
    return levels->members[levels->begins[host] + rank % weft_levels_count(levels, host)];
}

#endif
