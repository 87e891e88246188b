/* SPDX-License-Identifier: BSD-3-Clause */
/* NVSHMEM's names on top of Weft, for programs that were written for NVSHMEM: docs/nvshmem.md lists
 * the supported names. A program that includes <nvshmem.h> or <nvshmemx.h> finds this file if the
 * folder weft/nvshmem is on the compiler's path. No other part of Weft needs it.
 *
 * NVSHMEM's calls name no team, so each translation unit has hidden state, which is filled when the
 * job's GPUs are opened: see weft/nvshmem/host/job.h. Kernels can use the names in
 * weft/nvshmem/device, and host code the names in weft/nvshmem/host. nvcc compiles both from one
 * source; nvrtc and a clang without CUDA compile the former, other compilers the latter. */
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
