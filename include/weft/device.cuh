/* SPDX-License-Identifier: BSD-3-Clause */
/* Communication from inside kernels, by loads and stores over the links between GPUs: no proxy, no
 * queue, and no state but the handle that shmemx_device_team() makes.
 *
 * Until version 1.0 this source and the handle's layout (WEFT_DEVICE_VERSION) may change; the names
 * and arguments of libweft_device, which is made of it, are frozen.
 *
 *   team.cuh     the handle; weft_at: where a member has an object
 *   copy.cuh     weft_copy, weft_put, weft_get
 *   signal.cuh   words, fences, signals, waits, atomics
 *   bulk.cuh     copies to and from shared memory by the hardware (sm_90)
 *   barrier.cuh  meetings of blocks by channels, and of grids
 *   packet.cuh   packets: 8 bytes and their flag, the fastest way for what is small
 *   spin.cuh     the end of the job; ptx.cuh: single instructions; check.cuh: checked mode
 *
 * The language is C, and C++ of CUDA: nvcc, nvrtc, clang for CUDA, and plain clang for nvptx64
 * compile it. Members are named by their rank in the team. Everything has the scope of the system.
 *
 * Suffixes say who calls. _t: a thread by itself. _w: all threads of a warp, _b: all threads of a
 * block, together and with the same arguments. What a warp or block has done by them is ordered as
 * if one thread had done it, when the threads have synced: most functions do not sync by
 * themselves, and say so where they do.
 *
 * Order. A store, copy or relaxed word is seen by a peer when that peer has waited for a signal
 * (weft_signal, weft_put_signal, weft_barrier) that was given behind it: by the same thread, or by
 * one of its warp or block behind a sync of both. Between two stores without that there is no
 * order, and between two signals neither, unless one thread gives both.
 *
 * What goes wrong most easily:
 *   - A block that waits keeps its place on the GPU. Waits belong into grids that fit there at
 * once, beside what else runs, as do at most 32 blocks of a latency-bound kernel. Every thread
 * sends all it owes before it waits. Kernels on two streams that each wait for the peers' are
 * launched in one order on all PEs.
 *   - PEs that share a GPU (t->neighbours > 1) without MPS run by turns, and meet once a slice of
 *     some milliseconds. Their waits rest (t->rest_ns).
 *   - A wait that returns 0 says that the job is over, as when a PE has died: what was waited for
 *     has not come, results are worth nothing, and the kernel is to return. Waits look about once a
 *     millisecond.
 *   - What peers write is never loaded through const __restrict__, __ldg or ld.global.nc, whose
 *     cache keeps the old. A plain load behind a wait is fine. So is one in a loop that does not
 *     wait, but it may find the old for ever: poll by weft_test_until or weft_g32 and weft_g64.
 *   - Who meets or sends packets does so by a channel, with the same channels in the same order on
 *     all members: geometry of launches comes from what all members know alike.
 *   - A signal that is set is seen by its value, not by its arrival: numbers that grow (the number
 *     of a round) need no reset, and replay in graphs if they are kept in GPU memory. */
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
