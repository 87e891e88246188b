/* SPDX-License-Identifier: BSD-3-Clause */
/* Communication from inside kernels, by stores and loads over the links between GPUs: no proxy, no
 * queue, no state but the handle that shmemx_device_team() makes.
 *
 * The interface is not frozen yet: WEFT_DEVICE_VERSION says which one this is.
 *
 * The language is C, and C++ of CUDA: nvcc, nvrtc, clang for CUDA and plain clang for nvptx64
 * compile it. Suffixes say who calls: _t a thread by itself, _w all threads of a warp, _b all of a
 * block, together. What a group has done is ordered as if one thread had done it behind the
 * group's sync. Everything has the scope of the system. Members are named by their rank in the
 * team.
 *
 * Pitfalls:
 *   - A block that waits keeps its place on the GPU. Wait in grids that fit there at once, beside
 *     what else runs, and let every thread send all it owes before it waits. Kernels that wait for
 *     each other on two streams are launched in one order on all PEs.
 *   - PEs that share a GPU (t->neighbours) without MPS run by turns: they meet once a time slice.
 *   - When a wait has returned 0 the job is over and results are worth nothing: return.
 *   - What peers write is never const __restrict__, and not loaded by ld.global.nc or __ldg: caches
 *     would keep the old. A plain load behind a wait is fine.
 *   - Blocks meet by channel: the same channels are used in the same order on all members, so the
 *     geometry of launches depends on nothing that differs between them. */
#ifndef WEFT_DEVICE_CUH
#define WEFT_DEVICE_CUH

#include "weft/device/team.cuh"

#if defined(__CUDACC__) || defined(__NVPTX__) || defined(WEFT_DEVICE_HOST)
#include "weft/device/ptx.cuh"
#include "weft/device/group.cuh"
#include "weft/device/spin.cuh"
#include "weft/device/copy.cuh"
#include "weft/device/signal.cuh"
#include "weft/device/barrier.cuh"
#include "weft/device/packet.cuh"
#include "weft/device/bulk.cuh"
#endif

#endif
