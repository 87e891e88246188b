/* SPDX-License-Identifier: BSD-3-Clause */
/* The GPU that this PE uses. */
#ifndef PYWEFT_GPU_H
#define PYWEFT_GPU_H

#include "module.h"

/* Returns the number of this PE's GPU as CUDA counts in this process, or -1 with RuntimeError if
 * the PE has none. Sets pyweft_session.device. */
int pyweft_gpu(const char *call);

#endif
