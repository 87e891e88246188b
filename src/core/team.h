/* SPDX-License-Identifier: BSD-3-Clause */
/* Teams: handles, splitting, creation, and the workspace of operators.
 *
 * A handle is a small number cast to a pointer, so an invalid one is found by a bounds check. Every
 * member uses the same slot of its scratch memory for the team: synchronisation words first
 * (core/sync.h), then workspace, committed when it is needed, and, in jobs with far PEs, the
 * receive area and the inbox at the end. The table of teams is changed under a lock and read
 * without it. The epochs of collectives belong to the team, which only one thread of a PE may use
 * at a time. */
#ifndef WEFT_CORE_TEAM_H
#define WEFT_CORE_TEAM_H

#include <stddef.h>
#include <shmem.h>
#include "boot/boot.h"
#include "core/sync.h"

/* Returns the team of a handle, or NULL for SHMEM_TEAM_INVALID and for everything that is not a
 * live handle. */
struct weft_team *weft_team_find(shmem_team_t handle);

/* Returns -EINVAL with text: the call's argument `team` is not a live handle. */
__attribute__((cold)) int weft_team_refuse(shmem_team_t handle);

/* Returns the team that uses this slot of scratch memory, or NULL. The slot is the same on all
 * members. */
struct weft_team *weft_team_in_slot(int slot);

/* Returns the member number of a world PE, or -1. */
int weft_team_member(const struct weft_team *team, int world_pe);

/* Returns the workspace of a near member, as mapped here. */
void *weft_team_workspace_of(const struct weft_team *team, int member);

/* Commits `bytes` of this PE's workspace of the team; committed memory stays. Local. Returns 0, or
 * -ENOMEM with text if the machine or the slot has too little. */
int weft_team_workspace_commit(struct weft_team *team, size_t bytes);
size_t weft_team_workspace_capacity(void); /* the same on all PEs */

/* Makes WORLD and SHARED; drops all teams. */
int weft_teams_open(void);
void weft_teams_close(void);

/* The arguments of shmem_team_split_strided. */
struct weft_split {
    int start, stride, size;
    const shmem_team_config_t *config;
    long config_mask;
};

/* Implements shmem_team_split_strided. Collective over the parent. Returns 0, or the same -errno on
 * all members: -EINVAL if arguments are wrong or differ; -ENOSPC or -ENOMEM, logged, if there is no
 * room. */
int weft_team_split(struct weft_team *parent, const struct weft_split *split,
                    shmem_team_t *new_team);

/* Implements shmemx_team_create for the members of the subset, in its order. Collective over these
 * only, in any thread. Returns 0, or the same -errno on all members, with text: -ENOSPC, -ENOMEM,
 * -ECONNABORTED. */
int weft_team_create(const struct weft_boot_subset *subset, shmem_team_t *new_team);

void weft_team_destroy(struct weft_team *team);

#endif
