/* SPDX-License-Identifier: BSD-3-Clause */
/* Teams: handles, splitting, making, and the workspace of operators.
 *
 * A handle is a small number in a pointer's clothes, so a wrong one is found by a bounds check.
 * Every member owns the same slot of its scratch memory for the team: synchronisation words first
 * (core/sync.h), then workspace that is committed when it is needed, and at the end of the slot, in
 * jobs with far PEs, the receive area and the inbox. Teams lie in a table that is changed under a
 * lock and read without; what a collective counts belongs to its team, on which only one thread of
 * a PE may be at a time.
 */
#ifndef WEFT_CORE_TEAM_H
#define WEFT_CORE_TEAM_H

#include <stddef.h>
#include <shmem.h>
#include "boot/boot.h"
#include "core/sync.h"

/* The team behind a handle, NULL for SHMEM_TEAM_INVALID and for anything that is no live handle. */
struct weft_team *weft_team_find(shmem_team_t handle);

/* -EINVAL, with text: the call's argument `team` is no such handle. */
__attribute__((cold)) int weft_team_refuse(shmem_team_t handle);

/* The team in a slot of the scratch window, or NULL. Members have their team in the same slot. */
struct weft_team *weft_team_in_slot(int slot);

/* The member number of a world PE, or -1. */
int weft_team_member(const struct weft_team *team, int world_pe);

/* The workspace of a near member, here mapped. */
void *weft_team_workspace_of(const struct weft_team *team, int member);

/* Commits `bytes` of this PE's workspace of the team; what is committed stays. Local.
 * 0; -ENOMEM with text when the machine or the slot's capacity does not have it. */
int weft_team_workspace_commit(struct weft_team *team, size_t bytes);
size_t weft_team_workspace_capacity(void); /* the same on all PEs */

/* Makes WORLD and SHARED; drops all teams. */
int weft_teams_open(void);
void weft_teams_close(void);

/* shmem_team_split_strided. Collective over the parent; 0 or the same -errno on all of them:
 * -EINVAL for arguments that are wrong or differ, -ENOSPC or -ENOMEM, logged, where there is no
 * room. */
int weft_team_split_strided(struct weft_team *parent, int start, int stride, int size,
                            const shmem_team_config_t *config, long config_mask,
                            shmem_team_t *new_team);

/* shmemx_team_create: of the members of the subset, in its order. Collective over them alone, in
 * any thread; 0 or the same -errno on all of them, with text: -ENOSPC, -ENOMEM, -ECONNABORTED. */
int weft_team_create(const struct weft_boot_subset *subset, shmem_team_t *new_team);

void weft_team_destroy(struct weft_team *team);

#endif
