/* SPDX-License-Identifier: BSD-3-Clause */
/* Groups of PEs, drawn at random, in a random order, and equal on every PE. */
#ifndef TESTS_API_GROUP_H
#define TESTS_API_GROUP_H

#include <shmem.h>
#include <stdbool.h>
#include "api/model.h"

enum { GROUP_MAX = 16 };

struct group {
    int pes[GROUP_MAX], count;
    int member; /* this PE's index, or -1 */
    uint64_t tag;
};

static inline void group_find(struct group *group, int me) {
    group->member = -1;
    for (int i = 0; i < group->count; i++)
        if (group->pes[i] == me)
            group->member = i;
}

static inline void group_shuffle(struct group *group, struct random *random) {
    for (int i = group->count - 1; i > 0; i--) {
        int other = (int)random_below(random, (size_t)i + 1), pe = group->pes[i];
        group->pes[i] = group->pes[other];
        group->pes[other] = pe;
    }
}

/* Draws a group of at most npes = GROUP_MAX members. The tag is random, too, but 0 in one half of
 * the draws. */
static inline struct group group_draw(struct random *random, int me, int npes) {
    struct group group = {.count = npes};
    for (int pe = 0; pe < npes; pe++)
        group.pes[pe] = pe;
    group_shuffle(&group, random);
    group.count = 1 + (int)random_below(random, (size_t)npes);
    group.tag = random_below(random, 2) ? random_next(random) : 0;
    group_find(&group, me);
    return group;
}

/* All PEs, the last one first. */
static inline struct group group_of_all(int me, int npes) {
    struct group group = {.count = npes};
    for (int i = 0; i < npes; i++)
        group.pes[i] = npes - 1 - i;
    group_find(&group, me);
    return group;
}

/* Like `group`, reduced to the PEs that can access each other's memory. */
static inline struct group group_of_shared(struct group group) {
    for (int i = 0; i < group.count; i++)
        group.pes[i] = shmem_team_translate_pe(SHMEM_TEAM_SHARED, group.pes[i], SHMEM_TEAM_WORLD);
    return group;
}

static inline struct group group_draw_near(struct random *random) {
    return group_of_shared(group_draw(random, shmem_team_my_pe(SHMEM_TEAM_SHARED),
                                      shmem_team_n_pes(SHMEM_TEAM_SHARED)));
}

static inline struct group group_of_near(void) {
    return group_of_shared(
        group_of_all(shmem_team_my_pe(SHMEM_TEAM_SHARED), shmem_team_n_pes(SHMEM_TEAM_SHARED)));
}

#endif
