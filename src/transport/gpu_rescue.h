/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of a job reaches the GPU.
 *
 * A thread sleeps on the job's abort word. When the job is over, kernels that wait see that for
 * themselves. Stream memory operations cannot: the words that they wait for are set to 1, again and
 * again, from a stream of high priority. A thread that is stuck in a synchronise of CUDA's then
 * returns, with results that are worth nothing, and finds the job aborted in its next call of Weft.
 *
 *   0 ms     the words are released every millisecond from here on; nothing is freed or waited for
 *   100 ms   if the GPU still has work of this process's, the process ends hard
 *   400 ms   if the process is still there, it ends all the same (a graph replayed in a loop, say)
 *
 * A process whose kernel has waited for longer than the program said, and trapped, is left to
 * itself: the program knows by an error of CUDA's that nobody comes, and the GPU has nothing left
 * to stop.
 *
 * The end is weft_boot_end_self's: one line and WEFT_STATUS_ABORTED, or the status that
 * shmem_global_exit was called with. The whole context has to be drained, not a list of streams: a
 * graph is replayed on streams that Weft never saw, and streams are destroyed. */
#ifndef WEFT_TRANSPORT_GPU_RESCUE_H
#define WEFT_TRANSPORT_GPU_RESCUE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Begins to watch `abort`, a futex word that is woken when it is set, and registers its page:
 * weft_gpu_abort is filled. The GPU is open and its context current. Local; once until close.
 * 0 or -errno with text. */
struct weft_gpu;
int weft_gpu_rescue_open(const struct weft_gpu *gpu, _Atomic uint32_t *abort);

/* Ends the watch: before anything is freed that a stream may wait for, and before the streams are
 * destroyed. When the job is over it returns once the GPU has been released, or not at all. Exit
 * handlers need not: the thread ends before the driver does. Nothing in a forked child, and nothing
 * the second time. */
void weft_gpu_rescue_close(void);

/* Whether a kernel of this process has ended the job (weft_abort), or has found that it must not
 * run. Who asks first tells the launcher, or the peers; the watcher asks every 50 ms, and when the
 * abort word is woken. One load where no kernel has. */
bool weft_gpu_rescue_heard(void);

/* This PE is number `turn` of `turns` PEs on its GPU: by that its kernels trap apart from theirs
 * (transport/pad.cu). */
void weft_gpu_rescue_take_turns(int turn, int turns);

/* The words [first, first + count), in this GPU's memory, are waited for by stream memory
 * operations from now on, until the close; 1 releases each. The same `first` again: the larger
 * count holds. Members that do not exist need no words. -ENOMEM with text. */
int weft_gpu_rescue_add(uint32_t *first, size_t count);

/* Work that may wait for a peer, a kernel or a stream memory operation, is about to be enqueued or
 * captured; weft_gpu_launch says so of its kernels. One store. A process that never says so is left
 * to itself when the job is over. */
void weft_gpu_rescue_note(void);

#endif
