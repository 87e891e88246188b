/* SPDX-License-Identifier: BSD-3-Clause */
/* A PE whose team handle is wrong does not know which team waits for it. It announces that it is
 * lost, and the team that waits for it in vain answers. */
#ifndef WEFT_COLL_LOST_MEMBER_H
#define WEFT_COLL_LOST_MEMBER_H

#include "core/team.h"

/* Returns the team that waits for this PE, or NULL if no team answers within a second. */
struct weft_team *weft_lost_member_find_team(void);

/* Answers `member`, if it is lost, that `team` waits for it. */
void weft_lost_member_answer(const struct weft_team *team, int member);

#endif
