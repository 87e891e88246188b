/* SPDX-License-Identifier: BSD-3-Clause */
/* The header that a program for NVSHMEM includes; put this folder on the compiler's path. */
#ifndef WEFT_NVSHMEM_NVSHMEM_H
#define WEFT_NVSHMEM_NVSHMEM_H

#include <weft/nvshmem.cuh>

#endif
