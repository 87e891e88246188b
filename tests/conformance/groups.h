/* SPDX-License-Identifier: BSD-3-Clause */
/* The teams on which a collective is tested: predefined, in reverse order, every other PE while the
 * others do the same on a team of their own, the rows and columns of a grid, one PE alone. Every PE
 * is in one team of each kind, so all PEs can test the kinds in the same order. */
#ifndef TESTS_CONFORMANCE_GROUPS_H
#define TESTS_CONFORMANCE_GROUPS_H

#include <shmem.h>

enum { GROUPS = 8, GROUP_PES_MAX = 64 };

struct group {
    const char *name;
    shmem_team_t team;
    int my_pe, npes;
    int world[GROUP_PES_MAX]; /* world number of each member, by translation */
};

static inline void group_describe(struct group *group, const char *name, shmem_team_t team) {
    group->name = name;
    group->team = team;
    group->my_pe = shmem_team_my_pe(team);
    group->npes = shmem_team_n_pes(team);
    for (int pe = 0; pe < group->npes; pe++)
        group->world[pe] = shmem_team_translate_pe(team, pe, SHMEM_TEAM_WORLD);
}

static inline void groups_make(struct group *groups) {
    int me = shmem_my_pe(), npes = shmem_n_pes();
    shmem_team_t made, mine = SHMEM_TEAM_INVALID, x, y;
    group_describe(groups++, "WORLD", SHMEM_TEAM_WORLD);
    group_describe(groups++, "SHARED", SHMEM_TEAM_SHARED);
    shmem_team_split_strided(SHMEM_TEAM_WORLD, npes - 1, -1, npes, NULL, 0, &made);
    group_describe(groups++, "all in reverse order", made);
    for (int first = 0; first < 2 && first < npes; first++) {
        shmem_team_split_strided(SHMEM_TEAM_WORLD, first, 2, (npes - first + 1) / 2, NULL, 0,
                                 &made);
        if (made != SHMEM_TEAM_INVALID)
            mine = made;
    }
    group_describe(groups++, "every other PE", mine);
    shmem_team_split_2d(SHMEM_TEAM_WORLD, 3, NULL, 0, &x, NULL, 0, &y);
    group_describe(groups++, "a row of a grid", x);
    group_describe(groups++, "a column of a grid", y);
    for (int pe = 0; pe < npes; pe++) {
        shmem_team_split_strided(SHMEM_TEAM_WORLD, pe, 0, 1, NULL, 0, &made);
        if (pe == me)
            mine = made;
    }
    group_describe(groups++, "one PE alone", mine);
    shmem_team_split_strided(groups[-5].team, groups[-5].npes - 1, -1, groups[-5].npes, NULL, 0,
                             &made);
    group_describe(groups++, "the reverse of the reverse", made);
}

static inline void groups_drop(struct group *groups) {
    for (int i = 2; i < GROUPS; i++)
        shmem_team_destroy(groups[i].team);
}

#endif
