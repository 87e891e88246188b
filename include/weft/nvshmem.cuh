/* SPDX-License-Identifier: BSD-3-Clause */
/* NVSHMEM's names over Weft, for programs that were written for NVSHMEM: docs/nvshmem.md lists what
 * is there. A program that includes <nvshmem.h> or <nvshmemx.h> finds this file where the folder
 * weft/nvshmem is on the compiler's path. Nothing else of Weft needs it.
 *
 * NVSHMEM's calls name no team, so a translation unit has state of its own, which is filled when
 * the job's GPUs are opened: weft/nvshmem/host/job.h. Kernels have all names of
 * weft/nvshmem/device, and programs all of weft/nvshmem/host; nvcc makes both of one source, nvrtc
 * and a clang without CUDA the first, other compilers the second. */
#ifndef WEFT_NVSHMEM_CUH
#define WEFT_NVSHMEM_CUH

#include "weft/nvshmem/device/collective.cuh"
#include "weft/nvshmem/device/copy.cuh"

#ifdef WEFT_NVSHMEM_KERNEL
#include "weft/nvshmem/device/atomic.cuh"
#include "weft/nvshmem/device/signal.cuh"
#include "weft/nvshmem/device/wait.cuh"
#endif

#ifdef WEFT_NVSHMEM_HOST
#include "weft/nvshmem/host/setup.h"
#include "weft/nvshmem/host/launch.h"
#include "weft/nvshmem/host/stream.h"
#endif

#endif
