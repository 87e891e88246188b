/* SPDX-License-Identifier: BSD-3-Clause */
/* Extensions of OpenSHMEM, with the prefix that the specification gives them: shmemx_.
 * There is none yet. */
#ifndef SHMEMX_H
#define SHMEMX_H

#include <shmem.h>

#endif
