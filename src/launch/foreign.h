/* SPDX-License-Identifier: BSD-3-Clause */
/* Programs of another OpenSHMEM library, which run here as if each PE were alone. */
#ifndef WEFT_LAUNCH_FOREIGN_H
#define WEFT_LAUNCH_FOREIGN_H

#include "launch/run.h"

/* At the end of a run: if a PE that matters has never called Weft's shmem_init, and its program
 * calls another one, says so. */
void weft_foreign_tell(const struct weft_run *run);

#endif
