/* SPDX-License-Identifier: BSD-3-Clause */
/* What a program for NVSHMEM includes, where this folder is on the compiler's path. */
#ifndef WEFT_NVSHMEM_NVSHMEM_HOST_H
#define WEFT_NVSHMEM_NVSHMEM_HOST_H

#include <weft/nvshmem.cuh>

#endif
