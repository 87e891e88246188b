/* SPDX-License-Identifier: BSD-3-Clause */
/* weft.Block and weft.Share: memory of one PE, and what a group has of each other's. */
#ifndef PYWEFT_BLOCK_H
#define PYWEFT_BLOCK_H

#include "memory.h"

/* The group's share of the block, as a new weft.Share. Collective over the PEs. */
PyObject *pyweft_share_make(shmemx_block_t block, PyObject *pes, uint64_t tag);

#endif
