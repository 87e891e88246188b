/* SPDX-License-Identifier: BSD-3-Clause */
/* A PE whose team handle is wrong does not know which team it lets down. It says that it is lost,
 * and the team that waits for it in vain says which one that is. */
#ifndef WEFT_COLL_LOST_MEMBER_H
#define WEFT_COLL_LOST_MEMBER_H

#include "core/team.h"

/* The team that misses this PE; NULL if within a second none does. */
struct weft_team *weft_lost_member_find_team(void);

/* Says that `team` misses `member`, if that one is lost. */
void weft_lost_member_answer(const struct weft_team *team, int member);

#endif
