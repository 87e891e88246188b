/* SPDX-License-Identifier: BSD-3-Clause */
/* Brings the end of a job to the GPU.
 *
 * A thread sleeps on the job's abort word. When the job is over, kernels that wait see that
 * themselves. Stream memory operations cannot, so the words that they wait for are set to 1, again
 * and again, from a stream of high priority. A thread that blocks in a CUDA synchronisation then
 * returns, with undefined results, and finds the job aborted in its next call of Weft.
 *
 *   0 ms     the words are released every millisecond from now on; nothing is freed or waited for
 *   100 ms   if the GPU still has work of this process, the process is ended immediately
 *   400 ms   if the process still exists, it is ended in any case (a graph replayed in a loop, say)
 *
 * A process whose kernel has exceeded the program's time limit, and trapped, is not ended: the
 * program learns from a CUDA error that no peer arrived, and the GPU has no work left to stop.
 *
 * The process ends through weft_boot_end_self: one line and WEFT_STATUS_ABORTED, or the status
 * passed to shmem_global_exit. The whole context has to be drained rather than a list of streams,
 * because a graph may be replayed on streams that Weft has never seen, and streams may be
 * destroyed. */
#ifndef WEFT_TRANSPORT_GPU_RESCUE_H
#define WEFT_TRANSPORT_GPU_RESCUE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Starts the watcher of `abort`, a futex word that is woken when it is set, and registers its page:
 * fills in weft_gpu_abort, which stays empty if CUDA refuses the page. The GPU must be open and its
 * context current. Local; once before each close. Returns 0 or -errno with text. */
struct weft_gpu;
int weft_gpu_rescue_open(const struct weft_gpu *gpu, _Atomic uint32_t *abort);

/* Ends the watcher. Must come before anything is freed that a stream may wait for, and before
 * streams are destroyed. After the end of the job it returns when the GPU has been released, or not
 * at all. Exit handlers need not call it, because the thread ends before the driver does. Does
 * nothing in a forked child, and when it is called again. */
void weft_gpu_rescue_close(void);

/* Returns whether a kernel of this process has ended the job (weft_abort), or has detected that it
 * must not run. The first caller that sees it reports it to the launcher, or to the peers; if a
 * kernel must not run, that call ends the process. The watcher calls this every 50 ms, and when the
 * abort word is woken. Costs one load if no kernel has reported anything. */
bool weft_gpu_rescue_heard(void);

/* Sets this PE's number `turn` among the `turns` PEs on its GPU, so that its kernels trap at
 * another time than theirs (transport/pad.cu). */
void weft_gpu_rescue_take_turns(int turn, int turns);

/* Adds the words [first, first + count), in this GPU's memory, for which stream memory operations
 * wait until the close; writing 1 releases each. If `first` is already known, the larger count
 * holds. Members that do not exist need no words. Returns 0, or -ENOMEM with text. */
int weft_gpu_rescue_add(uint32_t *first, size_t count);

/* Records that work that may wait for a peer, a kernel or a stream memory operation, is about to be
 * enqueued or captured; weft_gpu_launch does this for its kernels that may wait. Costs one store. A
 * process that has never recorded such work is not ended by this file. */
void weft_gpu_rescue_note(void);

#endif
