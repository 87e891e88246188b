/* SPDX-License-Identifier: BSD-3-Clause */
/* Communication from inside kernels, by loads and stores over the links between GPUs. There is no
 * proxy, no queue, and no state except the handle that shmemx_device_team() makes.
 *
 * Until version 1.0 this source and the handle's layout (WEFT_DEVICE_VERSION) may change. The names
 * and arguments of libweft_device, which is compiled from it, are frozen.
 *
 *   team.cuh     the handle; weft_at: the address of a member's copy of an object
 *   copy.cuh     weft_copy, weft_put, weft_get
 *   signal.cuh   words, fences, signals, waits, atomics
 *   bulk.cuh     copies to and from shared memory by the hardware (sm_90)
 *   barrier.cuh  barriers of blocks on channels, and of grids
 *   packet.cuh   packets: 8 bytes and their flag, the fastest way to send small data
 *   spin.cuh     waits and the end of the job; ptx.cuh: single instructions; check.cuh: checked
 * mode
 *
 * The language is C, and C++ of CUDA: nvcc, nvrtc, clang for CUDA, and plain clang for nvptx64
 * compile it. A member is named by its rank in the team. All operations have system scope.
 *
 * A suffix names the callers. _t: a single thread. _w: all threads of a warp, _b: all threads of a
 * block, together and with the same arguments. After the threads have synced, the operations of a
 * warp or block are ordered as if one thread had done them. Most functions do not sync; the
 * comments name those that do.
 *
 * Order. A peer sees a store, copy or relaxed word when it has waited for a signal (weft_signal,
 * weft_put_signal, weft_barrier) that was given after it: by the same thread, or by another thread
 * of its warp or block after a sync of both. Otherwise two stores are not ordered. Two signals are
 * only ordered if one thread gives both.
 *
 * The most frequent mistakes:
 *   - A waiting block keeps its place on the GPU. So a grid that waits must fit on the GPU as a
 *     whole, beside everything else that runs there; at most 32 blocks of a latency-bound kernel
 *     do. Every thread sends everything it owes before it waits. If kernels on two streams each
 *     wait for peers, launch them in the same order on all PEs.
 *   - PEs that share a GPU (t->neighbours > 1) without MPS run in turns, and synchronise only once
 *     per time slice of some milliseconds. Their waits pause between polls (t->rest_ns).
 *   - A wait that returns 0 reports that the job is over, for example because a PE has died. The
 *     awaited data has not arrived, results are worthless, and the kernel must return. Waits check
 *     for this about once a millisecond.
 *   - Never load data that peers write through const __restrict__, __ldg or ld.global.nc: their
 *     cache may keep the old value. A plain load after a wait is correct. A plain load in a loop
 *     without a wait may return the old value for ever: poll with weft_test_until or weft_g32 and
 *     weft_g64.
 *   - Barriers and packets use a channel, with the same channels in the same order on all members:
 *     compute launch geometry from values that all members share.
 *   - A waiter sees the value of a signal, not the event of setting it: setting the same value
 *     twice is seen once. Growing numbers (such as the number of a round) need no reset, and they
 *     replay in graphs if they are kept in GPU memory. */
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
