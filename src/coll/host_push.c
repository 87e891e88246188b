/* SPDX-License-Identifier: BSD-3-Clause */
/* The words of teams only grow: each call counts from the largest value that the previous call
 * could have reached, which is the same on all members. */
#include "coll/host_push.h"
#include <stdlib.h>
#include "far/far.h"

/* A word that is not set for 2^31 pushes would seem to be ahead. */
static void words_renew(struct weft_team *team) {
    enum { RENEWED_SHIFT = 30 };
    if ((team->pushes_renewed ^ team->pushes) >> RENEWED_SHIFT == 0)
        return;
    for (int member = 0; member < team->npes; member++)
        weft_word_set(weft_receive_pushed(team->receive, member), team->pushes);
    team->pushes_renewed = team->pushes;
}

struct weft_host_push weft_host_push_of(const struct weft_group *group) {
    struct weft_host_push push = {.group = group};
    push.levels = group->team ? group->team->levels
                              : weft_levels_of(&group->member_list, group->npes, group->me);
    if (!push.levels)
        weft_job_panic(
            "no memory for the list of the hosts of %d members: run fewer PEs on this host",
            group->npes);
    return push;
}

/* Renews the words before this member meets the others: then all pushes of earlier calls have
 * arrived, and no push of this call. */
void weft_host_push_meet(struct weft_host_push *push, uint32_t most) {
    struct weft_team *team = push->group->team;
    if (team) {
        words_renew(team);
        push->before = team->pushes;
        team->pushes += most;
    } else {
        push->group->set->clear(push->group);
    }
    weft_far_quiet();
    push->group->sync(push->group);
}

void weft_host_push_give_back(struct weft_host_push *push) {
    if (!push->group->team)
        free(push->levels);
}

void weft_host_push_end(struct weft_host_push *push) {
    const struct weft_group *group = push->group;
    if (group->team) {
        weft_sync_barrier_near(group->team);
        return;
    }
    group->sync(group);
    group->set->clear(group);
    weft_host_push_give_back(push);
}

void weft_host_push_send(const struct weft_host_push *push, enum weft_push why, void *dest,
                         const void *source, size_t bytes, uint32_t number, int member) {
    const struct weft_group *group = push->group;
    if (bytes > 0)
        weft_group_near(group, dest, bytes, group->me);
    if (group->team) {
        weft_far_put_word(dest, source, bytes, weft_receive_pushed(group->team->receive, group->me),
                          push->before + number, weft_group_pe(group, member));
        return;
    }
    weft_far_put(dest, source, bytes, weft_group_pe(group, member));
    group->set->count(group, why, member);
}

void weft_host_push_await(const struct weft_host_push *push, enum weft_push why, int from,
                          uint32_t number, uint32_t all, int at) {
    const struct weft_group *group = push->group;
    struct weft_team *team = group->team;
    if (team)
        weft_word_wait(weft_receive_pushed(weft_team_receive(team, at), from),
                       push->before + number, weft_group_pe(group, from));
    else
        group->set->await(group, why, all, at);
}
