/* SPDX-License-Identifier: BSD-3-Clause */
/* Words of teams only grow: each call counts from where the one before it could have come to at
 * most, which is the same on all members. */
#include "coll/crossing.h"
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

struct weft_crossing weft_crossing_of(const struct weft_group *group) {
    struct weft_crossing crossing = {.group = group};
    crossing.levels = group->team ? group->team->levels
                                  : weft_levels_of(&group->member_list, group->npes, group->me);
    if (!crossing.levels)
        weft_job_panic("no memory for the hosts of %d members", group->npes);
    return crossing;
}

/* Words are renewed before this member has met the others: by then all of earlier calls has come,
 * and nothing of this one. */
void weft_crossing_meet(struct weft_crossing *crossing, uint32_t most) {
    struct weft_team *team = crossing->group->team;
    if (team) {
        words_renew(team);
        crossing->before = team->pushes;
        team->pushes += most;
    } else {
        crossing->group->set->clear(crossing->group);
    }
    weft_far_quiet();
    crossing->group->sync(crossing->group);
}

void weft_crossing_give_back(struct weft_crossing *crossing) {
    if (!crossing->group->team)
        free(crossing->levels);
}

void weft_crossing_end(struct weft_crossing *crossing) {
    const struct weft_group *group = crossing->group;
    if (group->team) {
        weft_sync_barrier_near(group->team);
        return;
    }
    group->sync(group);
    group->set->clear(group);
    weft_crossing_give_back(crossing);
}

void weft_crossing_push(const struct weft_crossing *crossing, enum weft_push why, void *dest,
                        const void *source, size_t bytes, uint32_t number, int member) {
    const struct weft_group *group = crossing->group;
    if (bytes > 0)
        weft_group_near(group, dest, bytes, group->me);
    if (group->team) {
        weft_far_put_word(dest, source, bytes, weft_receive_pushed(group->team->receive, group->me),
                          crossing->before + number, weft_group_pe(group, member));
        return;
    }
    weft_far_put(dest, source, bytes, weft_group_pe(group, member));
    group->set->count(group, why, member);
}

void weft_crossing_await(const struct weft_crossing *crossing, enum weft_push why, int from,
                         uint32_t number, uint32_t all, int at) {
    const struct weft_group *group = crossing->group;
    struct weft_team *team = group->team;
    if (team)
        weft_word_wait(weft_receive_pushed(weft_team_receive(team, at), from),
                       crossing->before + number, weft_group_pe(group, from));
    else
        group->set->await(group, why, all, at);
}
