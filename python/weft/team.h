/* SPDX-License-Identifier: BSD-3-Clause */
/* weft.Team: PEs in a given order, with ranks 0 to size - 1. */
#ifndef PYWEFT_TEAM_H
#define PYWEFT_TEAM_H

#include "module.h"

/* Reads the argument team; NULL and None mean weft.world. Sets *size to the number of members.
 * Returns false with TypeError, with ValueError for a team that was destroyed, or with RuntimeError
 * if no job is running or the team was made before finalize(). */
bool pyweft_team_take(const char *call, PyObject *object, shmem_team_t *team, int *size);

/* Returns weft.world, a borrowed reference. */
PyObject *pyweft_team_world(void);

#endif
