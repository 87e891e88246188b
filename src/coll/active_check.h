/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether all members of an active set make the same call with the same arguments, and whether they
 * come at all: for checked mode, what coll/consistency.h is for teams. An active set has no words
 * of its own, so every PE shows its calls in posts among its words of WORLD. */
#ifndef WEFT_COLL_ACTIVE_CHECK_H
#define WEFT_COLL_ACTIVE_CHECK_H

#include "coll/consistency.h"
#include "coll/group.h"

/* All members of the active set make this call with these arguments and the same pSync, or the job
 * ends. The first member compares; it alone speaks. */
void weft_active_check(const struct weft_group *group, const struct weft_same *arguments);

#endif
