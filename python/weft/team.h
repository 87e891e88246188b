/* SPDX-License-Identifier: BSD-3-Clause */
/* weft.Team: some PEs in an order; its members are ranks 0 to size - 1. */
#ifndef PYWEFT_TEAM_H
#define PYWEFT_TEAM_H

#include "module.h"

/* The team behind an argument, NULL and None being weft.world; `size` receives its number of
 * members. TypeError, ValueError for one that was destroyed, RuntimeError outside of the job. */
bool pyweft_team_take(const char *call, PyObject *object, shmem_team_t *team, int *size);

/* weft.world, borrowed. */
PyObject *pyweft_team_world(void);

#endif
