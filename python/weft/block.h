/* SPDX-License-Identifier: BSD-3-Clause */
/* weft.Block, memory of one PE, and weft.Share, a group's access to its members' blocks. */
#ifndef PYWEFT_BLOCK_H
#define PYWEFT_BLOCK_H

#include "memory.h"

/* Makes a weft.Share of the block for these PEs. Collective over them; blocks until all have
 * called. */
PyObject *pyweft_share_make(shmemx_block_t block, PyObject *pes, uint64_t tag);

#endif
